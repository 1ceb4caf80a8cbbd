// Lanes over verbs between GPUs of a fake driver on different nodes, with fake network devices:
// what arrives in the memory of a GPU and in host memory, by which way, and in which order.
#include <atomic>

#include "runtime/devices/cuda/internode/verbs_memory.h"
#include "tests/helpers/internode/verbs_nodes.h"
#include "tests/helpers/verbs/made_up_pci.h"

namespace mscclc::cuda {
namespace {

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
      VerbsNodes nodes(w);
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
    VerbsNodes nodes(w);
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
      VerbsNodes nodes(w);
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
    VerbsNodes nodes(w);
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
    VerbsNodes nodes(w);
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
    VerbsNodes nodes(w);
    REQUIRE(nodes.lane != nullptr);
    std::memset(nodes.pinned->data(), 1, 512);
    w.world.fake.fail_function("MemcpyAsync");
    // The far end may have failed before the put returns.
    const bool given =
        nodes.lane->put({nodes.gpu.get(), 0}, nodes.pinned->data(), 512, nodes.diagnostics);
    CHECK(!(given && nodes.lane->flush(nodes.diagnostics)));
    CHECK_THAT(nodes.text(), Catch::Contains("cannot copy 512 bytes for another node: "));
    CHECK_THAT(nodes.far_reports.wait(),
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
      const auto paths = known.one_of_each_path();
      CHECK(paths[0].region == exposed->region);
      CHECK(paths[1].region == nullptr);
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
    options.devices = *parse_hca_list(allowed);
    const auto adapter = verbs::Adapter::start(options, net, diagnostics);
    return adapter == nullptr ? "" : adapter->port().text();
  };
  CHECK(port("0000:01:00.0", "fake") == "port 1 of fake1");
  CHECK(port("0000:02:00.0", "fake") == "port 1 of fake0");
  CHECK(port("0000:02:00.0", "^fake0") == "port 1 of fake1");
}

}  // namespace
}  // namespace mscclc::cuda
