// A slot is not handed out again while a launch may read it.
#include "runtime/core/device/slots.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "tests/fakes/cuda/test_world.h"

namespace mscclc {
namespace {

namespace abi = cuda::abi;

constexpr uint64_t kLaunches = SlotPool::kMarkEvery;

/// A GPU whose streams do nothing until they are waited for, and a pool on it.
struct Gpu {
  explicit Gpu(cuda::World& world, GraphsEnd graphs_end = GraphsEnd::known)
      : device(world.open(0, 0)) {
    stream = device->create_stream(diagnostics);
    const auto source = [this](uint64_t bytes, Diagnostics& problems) {
      return device->allocate(bytes, "programs of calls", problems);
    };
    pool = std::make_shared<SlotPool>(device, 1000, source, graphs_end);
  }
  ~Gpu() { device->destroy_stream(stream); }

  /// Launches from so many slots, each dropped at once; where they were.
  std::vector<uint8_t*> launch(uint64_t slots) {
    std::vector<uint8_t*> used;
    for (uint64_t i = 0; i < slots; ++i) {
      const std::vector<uint8_t> content = next();
      const SlotPool::Slot slot = pool->take(content, diagnostics);
      INFO(cuda::text_of(diagnostics));
      REQUIRE(slot != nullptr);
      used.push_back(slot->data);
      pool->launched(*slot, content, stream);
    }
    return used;
  }
  /// A content that no other call has.
  std::vector<uint8_t> next() {
    std::vector<uint8_t> content(8);
    std::memcpy(content.data(), &++contents, sizeof contents);
    return content;
  }

  Diagnostics diagnostics;
  uint64_t contents = 0;
  const std::shared_ptr<Device> device;
  StreamHandle stream = nullptr;
  std::shared_ptr<SlotPool> pool;
};

/// How many of two lists are in both.
size_t common(const std::vector<uint8_t*>& a, const std::vector<uint8_t*>& b) {
  size_t n = 0;
  for (const uint8_t* slot : a) n += std::count(b.begin(), b.end(), slot);
  return n;
}

TEST_CASE("slots: what was launched is not handed out before it has ended") {
  cuda::World world({.deferred = true});
  {
    Gpu gpu(world);
    const auto first = gpu.launch(50 * kLaunches), second = gpu.launch(50 * kLaunches);
    CHECK(common(first, first) == first.size());  // all different
    CHECK(common(first, second) == 0);
    CHECK(gpu.device->synchronize(gpu.stream, gpu.diagnostics));
    const uint64_t before = world.fake.allocated(0);
    for (int i = 0; i < 100; ++i) {
      gpu.launch(kLaunches);
      CHECK(gpu.device->synchronize(gpu.stream, gpu.diagnostics));
    }
    CHECK(world.fake.allocated(0) == before);
    CHECK(cuda::text_of(gpu.diagnostics) == "");
  }
  world.check_clean();
}

TEST_CASE("slots: what was not launched is handed out at once") {
  cuda::World world({.deferred = true});
  {
    Gpu gpu(world);
    const uint8_t* const first = gpu.pool->take(gpu.next(), gpu.diagnostics)->data;
    CHECK(gpu.pool->take(gpu.next(), gpu.diagnostics)->data == first);
  }
  world.check_clean();
}

TEST_CASE("slots: what a graph has captured is not handed out again") {
  cuda::World world;
  {
    Gpu gpu(world);
    world.fake.begin_capture(cuda::abi::kCaptureModeThreadLocal, gpu.stream);
    const auto captured = gpu.launch(3 * kLaunches);
    world.fake.end_capture();
    const auto later = gpu.launch(1000);
    CHECK(common(captured, later) == 0);
    CHECK(common(later, later) > later.size());  // these are used again
  }
  world.check_clean();
}

TEST_CASE("slots: calls with what a graph has captured share its slot, and no others do") {
  cuda::World world;
  {
    Gpu gpu(world);
    const std::vector<uint8_t> content(1000, 7), longer(1001, 7), other(1000, 8);
    const auto capture = [&](const std::vector<uint8_t>& what) {
      world.fake.begin_capture(cuda::abi::kCaptureModeThreadLocal, gpu.stream);
      const SlotPool::Slot slot = gpu.pool->take(what, gpu.diagnostics);
      gpu.pool->launched(*slot, what, gpu.stream);
      world.fake.end_capture();
      return slot->data;
    };
    const auto holds = [&](const uint8_t* slot) {
      std::vector<uint8_t> data(content.size());
      CHECK(gpu.device->read(data.data(), slot, data.size(), gpu.diagnostics));
      return data == content;
    };
    uint8_t* const first = capture(content);
    CHECK(holds(first));
    const uint64_t before = world.fake.allocated(0);
    for (int i = 0; i < 1000; ++i) CHECK(capture(content) == first);
    CHECK(world.fake.allocated(0) == before);
    // Also launches outside of graphs, after which it is not handed out to others.
    for (int i = 0; i < 2; ++i) {
      const SlotPool::Slot slot = gpu.pool->take(content, gpu.diagnostics);
      CHECK(slot->data == first);
      gpu.pool->launched(*slot, content, gpu.stream);
    }
    CHECK(gpu.device->synchronize(gpu.stream, gpu.diagnostics));
    CHECK(capture(longer) != first);
    CHECK(capture(other) != first);
    CHECK(common(gpu.launch(1000), {first}) == 0);
    CHECK(holds(first));
    CHECK(cuda::text_of(gpu.diagnostics) == "");
  }
  world.check_clean();
}

/// A graph of launches of new contents, each from a slot that is dropped at once.
abi::Graph capture_new(cuda::World& world, Gpu& gpu, uint64_t launches) {
  world.fake.begin_capture(abi::kCaptureModeThreadLocal, gpu.stream);
  gpu.launch(launches);
  return world.fake.end_capture();
}

TEST_CASE("slots: what a graph has captured is handed out again when the graph is gone") {
  cuda::World world;
  {
    Gpu gpu(world);
    world.fake.destroy_graph(capture_new(world, gpu, 300));
    const uint64_t before = world.fake.allocated(0);
    for (int i = 0; i < 20; ++i) world.fake.destroy_graph(capture_new(world, gpu, 300));
    CHECK(world.fake.allocated(0) == before);
    capture_new(world, gpu, 300);
    CHECK(world.fake.allocated(0) == before);
    capture_new(world, gpu, 300);
    CHECK(world.fake.allocated(0) > before);  // the other graph is there
    CHECK(cuda::text_of(gpu.diagnostics) == "");
  }
  world.check_clean();
}

TEST_CASE("slots: graphs own nothing where their ends are not to be known") {
  cuda::World world;
  {
    Gpu gpu(world, GraphsEnd::unknown);
    world.fake.destroy_graph(capture_new(world, gpu, 300));
    CHECK(world.fake.calls("UserObjectCreate") == 0);
    const uint64_t before = world.fake.allocated(0);
    world.fake.destroy_graph(capture_new(world, gpu, 300));
    CHECK(world.fake.allocated(0) > before);
  }
  world.check_clean();
}

TEST_CASE("slots: a slot of two graphs, and of two owners, is handed out after the last of them") {
  cuda::World world;
  {
    Gpu gpu(world);
    const std::vector<uint8_t> content = gpu.next();
    SlotPool::Slot slot = gpu.pool->take(content, gpu.diagnostics), other;
    uint8_t* const data = slot->data;
    abi::Graph graphs[2];
    for (abi::Graph& graph : graphs) {
      world.fake.begin_capture(abi::kCaptureModeThreadLocal, gpu.stream);
      gpu.pool->launched(*slot, content, gpu.stream);
      gpu.pool->launched(*slot, content, gpu.stream);
      graph = world.fake.end_capture();
    }
    other = gpu.pool->take(content, gpu.diagnostics);
    CHECK(other->data == data);
    // All that is free, until the pool has to ask for more memory: then it has looked at all.
    const auto is_free = [&] {
      std::vector<SlotPool::Slot> taken;
      const uint64_t before = world.fake.allocated(0);
      while (world.fake.allocated(0) == before) {
        taken.push_back(gpu.pool->take(gpu.next(), gpu.diagnostics));
      }
      return std::ranges::any_of(taken, [&](const auto& one) { return one->data == data; });
    };
    world.fake.destroy_graph(graphs[0]);
    CHECK_FALSE(is_free());
    slot.reset();
    CHECK_FALSE(is_free());
    world.fake.destroy_graph(graphs[1]);
    CHECK_FALSE(is_free());
    other.reset();
    CHECK(is_free());
  }
  world.check_clean();
}

TEST_CASE("slots: a graph may outlive the pool") {
  cuda::World world;
  abi::Graph graph = nullptr;
  {
    Gpu gpu(world);
    graph = capture_new(world, gpu, 3);
  }
  world.fake.destroy_graph(graph);
  world.check_clean();
}

TEST_CASE(
    "slots: where a driver does not report the end of graphs, what they have is not handed out") {
  for (const char* function :
       {"StreamGetCaptureInfo", "UserObjectCreate", "GraphRetainUserObject"}) {
    INFO(function);
    cuda::World world;
    {
      Gpu gpu(world);
      world.fake.begin_capture(abi::kCaptureModeThreadLocal, gpu.stream);
      world.fake.fail_function(function);
      const auto lost = gpu.launch(1);
      const auto known = gpu.launch(1);
      world.fake.destroy_graph(world.fake.end_capture());
      const auto later = gpu.launch(1000);
      CHECK(common(lost, later) == 0);
      CHECK(common(known, later) > 0);
    }
    world.check_clean();
  }
}

// The driver calls from a thread of its own, while others are inside the pool.
TEST_CASE("slots: graphs end on other threads while calls are made") {
  cuda::World world;
  {
    Gpu gpu(world);
    std::vector<abi::Graph> graphs;
    for (int i = 0; i < 200; ++i) graphs.push_back(capture_new(world, gpu, 3));
    std::thread driver([&] {
      for (abi::Graph graph : graphs) world.fake.destroy_graph(graph);
    });
    gpu.launch(2000);
    driver.join();
    CHECK(cuda::text_of(gpu.diagnostics) == "");
  }
  world.check_clean();
}

TEST_CASE("slots: launches without end take no memory") {
  cuda::World world({.deferred = true});
  {
    Gpu gpu(world);
    const std::vector<uint8_t> content = gpu.next();
    const SlotPool::Slot slot = gpu.pool->take(content, gpu.diagnostics);
    REQUIRE(slot != nullptr);
    const auto launch = [&](uint64_t launches) {
      for (uint64_t i = 0; i < launches; ++i) gpu.pool->launched(*slot, content, gpu.stream);
    };
    // Nothing ends meanwhile, or all of it now and then.
    for (const uint64_t waits_every : {uint64_t{0}, uint64_t{100}, uint64_t{1000 * kLaunches}}) {
      for (uint64_t i = 0; i < 100; ++i) {
        launch(100 * kLaunches);
        if (waits_every != 0 && i * 100 * kLaunches % waits_every == 0) {
          CHECK(gpu.device->synchronize(gpu.stream, gpu.diagnostics));
        }
      }
      CHECK(world.fake.calls("EventCreate") <= SlotPool::kMaxMarks + 1);
    }
    // The newest mark has moved on to the last launches: they are known to have ended with it.
    const auto used = gpu.launch(100 * kLaunches);
    CHECK(gpu.device->synchronize(gpu.stream, gpu.diagnostics));
    const uint64_t before = world.fake.allocated(0);
    CHECK(common(used, gpu.launch(100 * kLaunches)) > 0);
    CHECK(world.fake.allocated(0) == before);
  }
  world.check_clean();
}

TEST_CASE("slots: a driver that makes no events costs memory, nothing else") {
  for (const char* function : {"EventCreate", "EventRecord", "EventQuery"}) {
    INFO(function);
    cuda::World world({.deferred = true});
    {
      Gpu gpu(world);
      for (int i = 0; i < 20; ++i) {
        world.fake.fail_function(function);
        const auto used = gpu.launch(2 * kLaunches);
        CHECK(common(used, used) == used.size());
      }
      CHECK(cuda::text_of(gpu.diagnostics) == "");
    }
    world.check_clean();
  }
}

TEST_CASE("slots: what cannot be written is reported, and its slot is free") {
  cuda::World world;
  {
    Gpu gpu(world);
    const uint8_t* const first = gpu.pool->take(gpu.next(), gpu.diagnostics)->data;
    world.fake.fail_function("MemcpyAsync");
    CHECK(gpu.pool->take(gpu.next(), gpu.diagnostics) == nullptr);
    CHECK(cuda::text_of(gpu.diagnostics).find("cannot copy 8 bytes") != std::string::npos);
    CHECK(gpu.pool->take(gpu.next(), gpu.diagnostics)->data == first);
  }
  world.check_clean();
}

}  // namespace
}  // namespace mscclc
