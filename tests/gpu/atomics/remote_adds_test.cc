// Additions by network devices to host memory and to a fake GPU's, and that faults are seen. Host
// memory: also with real devices, which MSCCLC_IBV_SO's library finds.
#include "tests/gpu/atomics/remote_adds.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

#include "executor/shared_atomics.h"
#include "runtime/devices/cuda/internode/verbs_memory.h"
#include "tests/fakes/cuda/test_world.h"
#include "tests/helpers/verbs/lane_world.h"

namespace mscclc::testing {
namespace {

constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
constexpr uint64_t kBytes = AddWords::kCount * sizeof(uint64_t);
constexpr uint64_t kAdds = 200;
constexpr uint32_t kPairs = 3;

/// The device, and words of host memory that it adds to.
struct HostWords {
  HostWords() {
    adapter = verbs::Adapter::start(verbs::testing::base_options(),
                                    net::SocketNet::start({.interface = "=lo"}, diagnostics),
                                    diagnostics);
    INFO(verbs::testing::text(diagnostics));
    REQUIRE(adapter != nullptr);
    auto made = verbs::MemoryRegion::make(adapter->domain(), data.data(), kBytes, kAccess);
    REQUIRE(made);
    region = *std::move(made);
    words = {reinterpret_cast<uint64_t>(data.data()), region->remote_key(),
             [this](uint64_t index) { return load_acquire<uint64_t>(&data[index]); }};
  }
  std::string check() const { return check_adds(*adapter, words, kAdds, kPairs); }

  verbs::fake::FakeVerbs* const fake = verbs::testing::reset_fake();
  Diagnostics diagnostics;
  std::vector<uint64_t> data = std::vector<uint64_t>(AddWords::kCount);
  std::shared_ptr<verbs::Adapter> adapter;
  std::shared_ptr<const verbs::MemoryRegion> region;
  AddWords words;
};

TEST_CASE("remote adds: to host memory") {
  HostWords w;
  CHECK(w.check() == "");
}

TEST_CASE("remote adds: what is wrong is seen") {
  HostWords w;
  if (w.fake == nullptr) return;  // real devices do not fail when asked to
  SECTION("an add that is answered, and not done") {
    w.fake->lost_add = 5;
    CHECK(w.check() == "add 5 brings 17179869148, not 21474836435");
  }
  SECTION("the last add of one is not done") {
    w.fake->lost_add = kAdds;
    CHECK(w.check() == "word 1 is 854698490113, not 858993457400");
  }
  SECTION("one of several that add at once is not done") {
    w.fake->lost_add = kAdds + 7;
    CHECK_THAT(w.check(), Catch::EndsWith(": one was no atomic"));
  }
  SECTION("memory that other ranks may not add to") {
    w.region = *verbs::MemoryRegion::make(w.adapter->domain(), w.data.data(), kBytes,
                                          kAccess & ~IBV_ACCESS_REMOTE_ATOMIC);
    w.words.key = w.region->remote_key();
    CHECK_THAT(w.check(), Catch::StartsWith("an addition: remote access error: "));
  }
  SECTION("more memory than there should be is added to") {
    std::vector<uint64_t> more(AddWords::kCount + 1);
    w.region = *verbs::MemoryRegion::make(w.adapter->domain(), more.data(), kBytes + 8, kAccess);
    w.words = {reinterpret_cast<uint64_t>(more.data()), w.region->remote_key(),
               [&](uint64_t index) { return load_acquire<uint64_t>(&more[index]); }};
    CHECK(w.check() == "an add at byte 4096 is not refused");
  }
}

TEST_CASE("remote adds: a device without atomics") {
  if (verbs::fake::FakeVerbs* const fake = verbs::testing::reset_fake(); fake != nullptr) {
    fake->atomics = false;
    Diagnostics diagnostics;
    const auto adapter = verbs::Adapter::start(
        verbs::testing::base_options(), net::SocketNet::start({.interface = "=lo"}, diagnostics),
        diagnostics);
    REQUIRE(adapter != nullptr);
    CHECK(check_adds(*adapter, {}, 1, 1) == "fake0 has no atomics");
  }
}

// As on a machine with both: the memory is registered as lanes do it.
TEST_CASE("remote adds: to a fake GPU's memory") {
  verbs::fake::FakeVerbs* const fake = verbs::testing::reset_fake();
  if (fake == nullptr) return;
  for (const bool data_direct : {false, true}) {
    fake->mlx5 = data_direct;
    cuda::World world({.dma_buf = true});
    {
      Diagnostics diagnostics;
      const auto device = world.open(0, 0);
      const auto memory = device->allocate(kBytes, "words", diagnostics);
      verbs::VerbsOptions options = verbs::testing::base_options();
      options.data_direct = true;
      options.mlx5_library = verbs::testing::fake_library();
      const auto adapter = verbs::Adapter::start(
          options, net::SocketNet::start({.interface = "=lo"}, diagnostics), diagnostics);
      REQUIRE((memory != nullptr && adapter != nullptr));
      cuda::VerbsMemory known(cuda::PrimaryContext::open(world.fake.driver(), 0, diagnostics),
                              adapter, true);
      const auto direct = known.make_direct(memory->data(), kBytes, kAccess);
      INFO((direct ? "" : direct.error().text()));
      REQUIRE(direct);
      CHECK(direct->data_direct == data_direct);
      const AddWords words{direct->address, direct->region->remote_key(),
                           [&](uint64_t index) -> std::optional<uint64_t> {
                             uint64_t value = 0;
                             const auto bytes = world.fake.bytes_at(
                                 cuda::address_of(memory->data()) + index * sizeof value,
                                 sizeof value);
                             if (bytes.size() != sizeof value) return std::nullopt;
                             std::memcpy(&value, bytes.data(), sizeof value);
                             return value;
                           }};
      CHECK(check_adds(*adapter, words, kAdds, kPairs) == "");
    }
    world.check_clean();
  }
}

}  // namespace
}  // namespace mscclc::testing
