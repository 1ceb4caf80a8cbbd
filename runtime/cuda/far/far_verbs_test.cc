// Lanes over verbs between GPUs of a fake driver on different nodes, with fake network devices:
// what arrives in the memory of a GPU and in host memory, by which way, and in which order.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "executor/words.h"
#include "runtime/cuda/fake/two_nodes.h"
#include "runtime/cuda/far/verbs_memory.h"
#include "runtime/verbs/testing/lane_world.h"
#include "runtime/verbs/testing/made_up_pci.h"

namespace mscclc::cuda {
namespace {

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

/// Two nodes with a lane over verbs, if there can be one.
struct VerbsNodes : TwoNodes {
  explicit VerbsNodes(World& world) : TwoNodes(world, kMemory, kLongest) {
    pinned = near->allocate_visible(kMemory, "packets", diagnostics);
    end = await_lane();
    if (end != nullptr) lane = open_lane(end->offer());
  }

  std::unique_ptr<Memory> pinned;
  std::unique_ptr<LaneEnd> end;
  std::unique_ptr<Lane> lane;
};

/// Puts of all sizes from the GPU and from host memory, to either, each with a count after it.
void check_all_ways(World& world, VerbsNodes& nodes) {
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

/// What all cases begin with. The fake library is shared by all of them.
struct VerbsWorld {
  explicit VerbsWorld(FakeOptions options = {}) : world(options) {
    // The numbers that the fake driver gives as addresses.
    fake->gpu_begin = 0x400000000000;
    fake->gpu_end = 0x500000000000;
  }
  void check_clean() {
    world.check_clean();
    CHECK(fake->objects == 0);
  }
  verbs::fake::FakeVerbs* const fake = verbs::testing::reset_fake();
  const SetVariable library{"MSCCLC_IBV_SO", verbs::testing::fake_library()};
  const SetVariable lanes{"MSCCLC_LANE", "verbs"};
  const SetVariable interface { "MSCCLC_SOCKET_IFNAME", "=lo" };
  World world;
};

const std::string kStaged =
    "gpu-memory-staged: fake0 does not reach the memory of cuda:1: what comes for it is copied "
    "through host memory ";

// `posted`: what the device has written to a GPU is there after a read at the earliest, as on PCI.
// So without the flush read a count comes before its data.
TEST_CASE("gpu over verbs: by dma-bufs, and what has been written is seen before its count") {
  for (const bool posted : {false, true}) {
    VerbsWorld w({.dma_buf = true});
    w.fake->posted = posted;
    {
      VerbsNodes nodes(w.world);
      REQUIRE(nodes.lane != nullptr);
      check_all_ways(w.world, nodes);
      CHECK(w.fake->reads > 0);
      // Both ends' memory, and nothing else was needed.
      CHECK(w.world.fake.calls("MemGetHandleForAddressRange") == 2);
    }
    w.check_clean();
  }
}

TEST_CASE("gpu over verbs: through host memory, which is said once, and why") {
  const auto check = [](VerbsWorld& w, const std::string& why) {
    VerbsNodes nodes(w.world);
    nodes.said = kStaged + why + "\n";
    INFO(nodes.text());
    REQUIRE(nodes.lane != nullptr);
    check_all_ways(w.world, nodes);
    CHECK(w.fake->reads == 0);
  };
  SECTION("the driver has no dma-bufs") {
    VerbsWorld w;
    check(w, "(the driver has no dma-bufs here; nvidia-peermem is not loaded)");
    w.check_clean();
  }
  SECTION("the network device takes none") {
    VerbsWorld w({.dma_buf = true});
    w.fake->failing_call = "reg_dmabuf_mr";
    check(
        w,
        "(fake0 takes no dma-buf of 2097152 bytes: Cannot allocate memory (12); nvidia-peermem is "
        "not loaded)");
    w.check_clean();
  }
  SECTION("the user wants that") {
    VerbsWorld w({.dma_buf = true});
    const SetVariable disabled("MSCCLC_FORCE_DISABLE_GDR", "1");
    check(w, "(MSCCLC_FORCE_DISABLE_GDR is set)");
    CHECK(w.world.fake.calls("MemGetHandleForAddressRange") == 0);
    w.check_clean();
  }
  SECTION("copies that take their time") {
    VerbsWorld w({.deferred = true});
    {
      VerbsNodes nodes(w.world);
      REQUIRE(nodes.lane != nullptr);
      for (uint64_t i = 1; i <= 5; ++i) {
        const auto data = pattern(300'000, i);
        w.world.fake.set_bytes(address_of(nodes.source->data()), data);
        CHECK(nodes.lane->put({nodes.gpu.get(), 4096}, nodes.source->data(), data.size(),
                              nodes.diagnostics));
        CHECK(nodes.lane->signal({nodes.host.get(), 0}, i, nodes.diagnostics));
        CHECK(nodes.lane->flush(nodes.diagnostics));
        CHECK(nodes.word(*nodes.on_host, 0) == i);
        REQUIRE((nodes.there(*nodes.on_gpu, 4096, data.size()) == data));
      }
    }
    w.check_clean();
  }
}

TEST_CASE("gpu over verbs: additions of the device are refused at a GPU") {
  VerbsWorld w({.dma_buf = true});
  const SetVariable mode("MSCCLC_IBV_MODE", "host");
  {
    VerbsNodes nodes(w.world);
    CHECK(nodes.lane == nullptr);
    CHECK_THAT(nodes.text(),
               Catch::Contains(
                   "it says: the lane of rank 5 cannot be made: memory here is a GPU's, where a "
                   "count that a device adds to may be seen before what it has written; "
                   "MSCCLC_IBV_MODE=host-no-atomic is for GPUs"));
  }
  w.check_clean();
}

TEST_CASE("gpu over verbs: memory that has gone is written no more") {
  VerbsWorld w;
  {
    VerbsNodes nodes(w.world);
    REQUIRE(nodes.lane != nullptr);
    nodes.on_gpu.reset();
    CHECK(nodes.lane->signal({nodes.gpu.get(), 0}, 1, nodes.diagnostics));
    CHECK(nodes.lane->signal({nodes.host.get(), 0}, 2, nodes.diagnostics));
    CHECK(nodes.lane->flush(nodes.diagnostics));
    CHECK(nodes.word(*nodes.on_host, 0) == 2);
  }
  w.check_clean();
}

TEST_CASE("gpu over verbs: a copy that goes wrong ends the lane, and both ends say so") {
  VerbsWorld w;
  {
    VerbsNodes nodes(w.world);
    REQUIRE(nodes.lane != nullptr);
    std::memset(nodes.pinned->data(), 1, 512);
    w.world.fake.fail_function("MemcpyAsync");
    CHECK(nodes.lane->put({nodes.gpu.get(), 0}, nodes.pinned->data(), 512, nodes.diagnostics));
    CHECK(!nodes.lane->flush(nodes.diagnostics));
    CHECK_THAT(nodes.text(), Catch::Contains("cannot copy 512 bytes for another node: "));
    CHECK_THAT(nodes.far_told.wait(),
               Catch::StartsWith("the lane of rank 5 brings orders that cannot be carried out: "));
  }
}

std::atomic<int> asked_by_address{0};
uint64_t gpu_words[512];

TEST_CASE("gpu over verbs: nvidia-peermem is looked for where there are no dma-bufs only") {
  const verbs::testing::MadeUpPci machine;
  machine.load_module("nvidia_peermem");
  asked_by_address = 0;
  for (const bool dma_buf : {true, false}) {
    VerbsWorld w({.dma_buf = dma_buf});
    w.fake->peermem = [](uint64_t, uint64_t) {
      ++asked_by_address;
      return reinterpret_cast<uint8_t*>(gpu_words);
    };
    {
      Diagnostics diagnostics;
      const auto device = w.world.open(0, 0);
      const auto memory = device->allocate(sizeof gpu_words, "memory", diagnostics);
      verbs::VerbsOptions options = verbs::testing::base_options();
      options.sysfs = machine.sysfs();
      VerbsMemory known(
          PrimaryContext::open(w.world.fake.driver(), 0, diagnostics),
          verbs::Adapter::start(options, net::SocketNet::start({.interface = "=lo"}, diagnostics),
                                diagnostics),
          true);
      const auto exposed =
          known.expose(memory->data(), sizeof gpu_words, MemoryPlace::device, diagnostics);
      REQUIRE(exposed != nullptr);
      CHECK(!exposed->key.staged);
      CHECK(exposed->key.address == address_of(memory->data()));
      CHECK(known.any_direct());
      CHECK(asked_by_address == (dma_buf ? 0 : 1));
      CHECK(text_of(diagnostics) == "");
    }
    w.check_clean();
  }
}

TEST_CASE("gpu over verbs: lanes use the port that is nearest to the GPU") {
  const verbs::testing::MadeUpPci machine;
  machine.add_gpu("pci0000:00/0000:00:01.0/0000:01:00.0", 0);  // cuda:0
  machine.add_gpu("pci0000:00/0000:00:02.0/0000:02:00.0", 0);  // cuda:1
  machine.add_network_device("fake0", "pci0000:00/0000:00:02.0/0000:02:00.1", 0);
  machine.add_network_device("fake1", "pci0000:00/0000:00:01.0/0000:01:00.1", 0);
  VerbsWorld w;
  Diagnostics diagnostics;
  const auto net = net::SocketNet::start({.interface = "=lo"}, diagnostics);
  const auto port = [&](const char* gpu, const char* allowed) {
    verbs::VerbsOptions options = verbs::testing::base_options();
    options.gpu = gpu;
    options.sysfs = machine.sysfs();
    std::string why;
    options.devices = *verbs::parse_hca_list(allowed, why);
    const auto adapter = verbs::Adapter::start(options, net, diagnostics);
    return adapter == nullptr ? "" : adapter->port().text();
  };
  CHECK(port("0000:01:00.0", "fake") == "port 1 of fake1");
  CHECK(port("0000:02:00.0", "fake") == "port 1 of fake0");
  CHECK(port("0000:02:00.0", "^fake0") == "port 1 of fake1");
}

}  // namespace
}  // namespace mscclc::cuda
