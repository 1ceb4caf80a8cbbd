// For tests: lanes over verbs between GPUs of a fake driver on different nodes, with fake network
// devices, and with a fake GDRCopy where a test names it.
#pragma once

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include "executor/shared_atomics.h"
#include "tests/fakes/cuda/two_nodes.h"
#include "tests/fakes/gdrcopy/fake_gdrapi.h"
#include "tests/helpers/verbs/lane_world.h"

namespace mscclc::cuda {

constexpr uint64_t kMemory = 2 << 20;
constexpr std::chrono::milliseconds kLongest{60'000};

/// A variable, until it ends.
class SetVariable {
 public:
  SetVariable(const char* name, const std::string& value) : name_(name) {
    ::setenv(name, value.c_str(), 1);
  }
  ~SetVariable() { ::unsetenv(name_); }
  SetVariable(const SetVariable&) = delete;
  SetVariable& operator=(const SetVariable&) = delete;

 private:
  const char* const name_;
};

/// What all cases begin with. The fake libraries are shared by all of them.
struct VerbsWorld {
  explicit VerbsWorld(FakeOptions options = {}, bool with_gdrcopy = false)
      : gdrcopy("MSCCLC_GDRCOPY_SO", with_gdrcopy ? gdr::fake_library() : "libno_such_gdrapi.so"),
        world(options) {
    // The numbers that the fake driver gives as addresses.
    fake->gpu_begin = 0x400000000000;
    fake->gpu_end = 0x500000000000;
    fake_gdr->memory = [this](uint64_t address, uint64_t bytes) {
      int file = -1;
      const auto result =
          world.fake.driver().MemGetHandleForAddressRange(&file, address, bytes, abi::kDmaBufFd, 0);
      return result == abi::kSuccess ? file : -1;
    };
  }
  void check_clean() {
    world.check_clean();
    CHECK(fake->objects == 0);
    CHECK(fake_gdr->connections == 0);
    CHECK(fake_gdr->pins == 0);
    CHECK(fake_gdr->mappings == 0);
    CHECK(fake_gdr->misuses == 0);
  }
  verbs::fake::FakeVerbs* const fake = verbs::testing::reset_fake();
  gdr::FakeGdr* const fake_gdr = gdr::reset_fake();
  const std::string verbs_library = verbs::testing::fake_library();
  const SetVariable library{"MSCCLC_IBV_SO", verbs_library};
  const SetVariable mlx5{"MSCCLC_MLX5_SO", verbs_library};
  const SetVariable gdrcopy;
  const SetVariable lanes{"MSCCLC_LANE", "verbs"};
  const SetVariable interface { "MSCCLC_SOCKET_IFNAME", "=lo" };
  World world;
};

/// Two nodes with a lane over verbs, if there can be one.
struct VerbsNodes : TwoNodes {
  explicit VerbsNodes(VerbsWorld& w) : TwoNodes(w.world, kMemory, kLongest), fake(*w.fake) {
    pinned = near->allocate_visible(kMemory, "packets", diagnostics);
    end = await_lane();
    if (end != nullptr) lane = open_lane(end->offer());
  }

  /// Waits for a count as a block does. What GDRCopy stores comes by another mapping, in which no
  /// sanitizer sees an order: the device's reads, which came before it, take the place of that.
  void await(const Memory& memory, uint64_t offset, uint64_t value) {
    TwoNodes::await(memory, offset, value);
    (void)fake.reads.load();
  }

  verbs::fake::FakeVerbs& fake;
  std::unique_ptr<Memory> pinned;
  std::unique_ptr<LaneEnd> end;
  std::unique_ptr<Lane> lane;
};

/// Puts of all sizes from the GPU and from host memory, to either, each with a count after it.
inline void check_all_ways(World& world, VerbsNodes& nodes) {
  uint64_t count = 0;
  for (const size_t bytes : {1, 8, 64, 65, 4096, 262144, 262145, (1 << 20) + 13}) {
    for (const uint64_t offset : {64, 100, 262144 - 8}) {
      for (const int way : {0, 1, 2, 3}) {
        INFO("put " << count + 1 << ": " << bytes << " bytes, way " << way);
        Memory& to = way % 2 == 0 ? *nodes.gpu : *nodes.host;
        const Memory& at = way % 2 == 0 ? *nodes.on_gpu : *nodes.on_host;
        const auto data = pattern(bytes, ++count);
        uint8_t* const from = way < 2 ? nodes.source->data() : nodes.pinned->data();
        if (way < 2) {
          world.fake.set_bytes(address_of(from), data);
        } else {
          std::memcpy(from, data.data(), bytes);
        }
        // The counts lie elsewhere every third time.
        Memory& counts = count % 3 == 0 ? *nodes.gpu : *nodes.host;
        const Memory& counted = count % 3 == 0 ? *nodes.on_gpu : *nodes.on_host;
        REQUIRE(nodes.lane->put({&to, offset}, from, bytes, nodes.diagnostics));
        REQUIRE(nodes.lane->signal({&counts, 0}, count, nodes.diagnostics));
        alignas(8) uint64_t own = 0;
        REQUIRE(nodes.lane->complete(&own, count, nodes.diagnostics));
        nodes.await(counted, 0, count);
        const bool same = nodes.there(at, offset, bytes) == data;  // not printed: megabytes
        REQUIRE(same);
        while (load_acquire<uint64_t>(&own) != count) std::this_thread::yield();
      }
    }
  }
  CHECK(nodes.lane->flush(nodes.diagnostics));
  CHECK(nodes.text() == nodes.said);
}

}  // namespace mscclc::cuda
