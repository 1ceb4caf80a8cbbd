// Launches of several streams on the fake driver: what waits for what.
#include "runtime/devices/cuda/launch/launch_order.h"

#include "tests/fakes/cuda/test_world.h"

namespace mscclc::cuda {
namespace {

/// A GPU with two streams, or several, on which launches are made and do not run by themselves.
struct Gpu {
  explicit Gpu(World& world, int process = 0) : world(world), device(world.open(process, 0)) {
    for (StreamHandle& stream : streams) stream = device->create_stream(diagnostics);
    world.on_launch = [&](const device::LaunchPlan& plan) { last = plan; };
  }
  ~Gpu() {
    for (const StreamHandle stream : streams) device->destroy_stream(stream);
    CHECK(text_of(diagnostics) == "");
  }
  device::LaunchPlan launch(int stream, uint32_t blocks, uint32_t ranks_here = 1) {
    device::LaunchPlan plan = launch_of(blocks, 128, 132, ranks_here);
    plan.early = true;
    return launch(stream, plan);
  }
  device::LaunchPlan launch(int stream, const device::LaunchPlan& plan) {
    REQUIRE(device->launch(plan, streams[stream], diagnostics));
    return last;
  }
  uint32_t run(int stream) { return world.fake.run_launches(streams[stream]); }

  World& world;
  Diagnostics diagnostics;
  std::unique_ptr<CudaDevice> device;
  StreamHandle streams[3] = {};
  device::LaunchPlan last;
};

TEST_CASE("a launch that does not fit beside another begins when that has begun") {
  World world({.deferred = true});
  {
    Gpu gpu(world);
    CHECK(gpu.launch(0, 128).early);
    CHECK(!gpu.launch(1, 128).early);
    CHECK(!gpu.launch(0, 128).early);
    CHECK(gpu.run(1) == 0);  // whichever is asked first
    CHECK(gpu.run(0) == 1);
    CHECK(gpu.run(0) == 1);
    CHECK(gpu.run(1) == 1);
    CHECK(gpu.run(0) == 2);
    CHECK(gpu.launch(0, 128).early);
    CHECK(gpu.run(0) == 3);
  }
  world.check_clean();
}

TEST_CASE("communicators of a process share a GPU's order, and other GPUs have their own") {
  World world({.deferred = true});
  {
    Gpu gpu(world);
    const auto again = world.open(0, 0), other = world.open(0, 1);
    Diagnostics diagnostics;
    const StreamHandle theirs = again->create_stream(diagnostics);
    const StreamHandle elsewhere = other->create_stream(diagnostics);
    const device::LaunchPlan plan = launch_of(128, 128, 264);
    gpu.launch(0, 128);
    CHECK(again->launch(plan, theirs, diagnostics));
    CHECK(other->launch(plan, elsewhere, diagnostics));
    CHECK(world.fake.run_launches(theirs) == 0);
    CHECK(world.fake.run_launches(elsewhere) == 1);
    CHECK(gpu.run(0) == 1);
    CHECK(world.fake.run_launches(theirs) == 1);
    again->destroy_stream(theirs);
    other->destroy_stream(elsewhere);
    CHECK(text_of(diagnostics) == "");
  }
  world.check_clean();
}

TEST_CASE("launches of one stream, and small ones of several, put nothing on their streams") {
  World world;
  {
    Gpu gpu(world);
    for (int i = 0; i < 200; ++i) gpu.launch(0, 128);
    CHECK(world.fake.calls("StreamWaitValue32") == 0);
    gpu.launch(1, 8);
    CHECK(world.fake.calls("StreamWaitValue32") == 1);
    for (int i = 0; i < 50; ++i) gpu.launch(i % 2, 8);
    CHECK(world.fake.calls("StreamWaitValue32") == 1);
  }
  world.check_clean();
}

TEST_CASE("small launches let the next one begin at once while they have the GPU to themselves") {
  World world;
  {
    Gpu gpu(world);
    CHECK(gpu.launch(0, 33).frees_next);
    CHECK(!gpu.launch(0, 34).frees_next);
    CHECK(gpu.launch(0, 33).early);
    CHECK(!gpu.launch(1, 33).frees_next);
    CHECK(!gpu.launch(0, 33).frees_next);
    CHECK(gpu.launch(0, 33).early);
  }
  {
    Gpu gpu(world);
    CHECK(!gpu.launch(0, 33, 2).frees_next);  // the other rank's blocks need room, too
  }
  world.check_clean();
}

TEST_CASE("a stream with the handle of one that is gone is another one") {
  World world({.deferred = true});
  {
    Gpu gpu(world);
    gpu.launch(0, 128);
    world.fake.rename_stream(gpu.streams[0]);
    gpu.launch(0, 128);
    CHECK(world.fake.calls("StreamWaitValue32") == 1);
    CHECK(gpu.run(0) == 2);
  }
  world.check_clean();
}

TEST_CASE("branches of a capture get edges") {
  World world;
  {
    Gpu gpu(world);
    gpu.launch(1, 128);  // runs: nothing that is captured comes after it
    const size_t first = world.nodes.size();
    world.fake.begin_capture(abi::kCaptureModeThreadLocal, gpu.streams[0]);
    world.fake.fork_capture(gpu.streams[0], gpu.streams[1]);
    world.fake.fork_capture(gpu.streams[0], gpu.streams[2]);
    CHECK(gpu.launch(0, 60).begun == nullptr);
    CHECK(gpu.launch(1, 60).begun == nullptr);
    CHECK(!gpu.launch(2, 60).early);
    gpu.launch(2, 60);
    gpu.launch(0, 128);
    world.fake.end_capture();
    const auto& nodes = world.nodes;
    using Nodes = std::vector<abi::GraphNode>;
    const auto edges = [&](size_t i) { return world.fake.edges(nodes[first + i]); };
    CHECK(edges(0).empty());
    CHECK(edges(1).empty());
    CHECK(edges(2) == Nodes{nodes[first], nodes[first + 1]});
    CHECK(edges(3) == Nodes{nodes[first + 2]});
    CHECK(edges(4) == Nodes{nodes[first], nodes[first + 3]});
    CHECK(world.fake.calls("StreamWaitValue32") == 0);
  }
  world.check_clean();
}

TEST_CASE("a captured launch that comes after another already gets no second edge") {
  World world;
  {
    Gpu gpu(world);
    world.fake.begin_capture(abi::kCaptureModeThreadLocal, gpu.streams[0]);
    gpu.launch(0, 128);
    world.fake.fork_capture(gpu.streams[0], gpu.streams[1]);
    gpu.launch(1, 128);
    world.fake.end_capture();
    CHECK(world.fake.edges(world.nodes[1]) == std::vector<abi::GraphNode>{world.nodes[0]});
  }
  world.check_clean();
}

TEST_CASE("captures that follow one another know nothing of each other") {
  World world;
  {
    Gpu gpu(world);
    for (int i = 0; i < 2000; ++i) {
      world.fake.begin_capture(abi::kCaptureModeThreadLocal, gpu.streams[i % 2]);
      gpu.launch(i % 2, 128);
      world.fake.end_capture();
      REQUIRE(world.fake.edges(world.nodes.back()).empty());
    }
  }
  world.check_clean();
}

TEST_CASE("captured launches begin early only where captures know that") {
  World world;
  world.loaded = {true, false};
  {
    Gpu gpu(world);
    CHECK(gpu.launch(0, 128).early);
    world.fake.begin_capture(abi::kCaptureModeThreadLocal, gpu.streams[0]);
    CHECK(!gpu.launch(0, 128).early);
    CHECK(!gpu.launch(0, 128).early);
    world.fake.end_capture();
  }
  world.check_clean();
}

TEST_CASE("captured launches begin early after our own, and after any if the user says so") {
  for (const bool all : {false, true}) {
    World world;
    world.early_after_any = all;
    {
      Gpu gpu(world);
      CHECK(gpu.launch(0, 128).early);  // what comes before a launch that runs is not known
      world.fake.begin_capture(abi::kCaptureModeThreadLocal, gpu.streams[0]);
      CHECK(gpu.launch(0, 128).early == all);
      CHECK(gpu.launch(0, 128).early);
      world.fake.launch(gpu.streams[0], 0, 1);  // a kernel of the user's
      CHECK(gpu.launch(0, 128).early == all);
      CHECK(gpu.launch(0, 128).early);
      world.fake.end_capture();
      world.fake.begin_capture(abi::kCaptureModeThreadLocal, gpu.streams[0]);
      CHECK(gpu.launch(0, 128).early == all);  // nothing comes before it
      world.fake.end_capture();
    }
    world.check_clean();
  }
}

TEST_CASE("captured launches begin early after any kernel for callers that say so of a call") {
  World world;
  {
    Gpu gpu(world);
    const auto launch = [&](bool previous_allows_early) {
      device::LaunchPlan plan = launch_of(128, 128, 132);
      plan.early = true;
      plan.previous_allows_early = previous_allows_early;
      return gpu.launch(0, plan).early;
    };
    world.fake.begin_capture(abi::kCaptureModeThreadLocal, gpu.streams[0]);
    CHECK(!launch(false));
    world.fake.launch(gpu.streams[0], 0, 1);  // a kernel of the user's
    CHECK(launch(true));
    world.fake.launch(gpu.streams[0], 0, 1);
    CHECK(!launch(false));
    world.fake.end_capture();
  }
  world.check_clean();
}

TEST_CASE("ranks that share a GPU get no edges, which wait for ends") {
  World world;
  {
    Gpu gpu(world);
    world.fake.begin_capture(abi::kCaptureModeThreadLocal, gpu.streams[0]);
    world.fake.fork_capture(gpu.streams[0], gpu.streams[1]);
    gpu.launch(0, 128, 2);
    gpu.launch(1, 128, 2);
    world.fake.end_capture();
    CHECK(world.fake.edges(world.nodes[1]).empty());
  }
  world.check_clean();
}

TEST_CASE("a stream of a green context has room for fewer blocks") {
  World world({.deferred = true});
  {
    Gpu gpu(world);
    Diagnostics diagnostics;
    const auto current = std::make_unique<CurrentContext>(*gpu.device->context());
    const StreamHandle green = world.fake.create_green_stream(33);
    const auto launch = [&](uint32_t blocks) {
      return gpu.device->launch(launch_of(blocks, 128, 264), green, diagnostics);
    };
    CHECK(launch(66));
    CHECK(!launch(67));
    CHECK(text_of(diagnostics) ==
          "too-many-blocks: the plan has 67 thread blocks; the stream belongs to a green context "
          "with 33 of the 132 multiprocessors of cuda:0 (Fake GPU), which holds 66 at once\n"
          "  compile the plan with fewer blocks, instances or threads\n");
    gpu.launch(0, 1);  // does not fit beside those 66, wherever they are
    CHECK(gpu.run(0) == 0);
    CHECK(world.fake.run_launches(green) == 1);
    CHECK(gpu.run(0) == 1);
    gpu.device->destroy_stream(green);
  }
  world.check_clean();
}

TEST_CASE("a launch that could not be put after others is not made") {
  World world({.deferred = true});
  {
    Gpu gpu(world);
    gpu.launch(0, 128);
    Diagnostics diagnostics;
    world.fake.fail_call(6, abi::kUnknown);  // context (two), capture, id, room, wait
    CHECK(!gpu.device->launch(launch_of(128, 128, 264), gpu.streams[1], diagnostics));
    CHECK(text_of(diagnostics) ==
          "cuda: cannot make a stream wait for calls of other streams to begin: it went wrong "
          "(CUDA_ERROR_UNKNOWN)\n");
    gpu.launch(1, 128);
    CHECK(gpu.run(1) == 0);
    CHECK(gpu.run(0) == 1);
    CHECK(gpu.run(1) == 1);
  }
  world.check_clean();
}

}  // namespace
}  // namespace mscclc::cuda
