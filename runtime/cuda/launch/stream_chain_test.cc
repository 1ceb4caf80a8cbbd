// Calls of several streams on the fake driver: what waits for what.
#include "runtime/cuda/launch/stream_chain.h"

#include "runtime/cuda/fake/test_world.h"

namespace mscclc::cuda {
namespace {

/// A GPU with two streams; launches are put on them as a communicator does it.
struct ChainedGpu {
  explicit ChainedGpu(World& world) : world(world), device(world.open(0, 0)) {
    for (StreamHandle& stream : streams) stream = device->create_stream(diagnostics);
    chain = device->chain_streams(diagnostics);
  }
  ~ChainedGpu() {
    chain.reset();
    for (const StreamHandle stream : streams) device->destroy_stream(stream);
    CHECK(text_of(diagnostics) == "");
  }
  void call(int stream) {
    REQUIRE(chain->follow(streams[stream], diagnostics));
    REQUIRE(device->launch({.blocks = 1, .threads = 128, .most_blocks = 132, .ranks_here = 1},
                           streams[stream], diagnostics));
    REQUIRE(chain->put_last(streams[stream], diagnostics));
  }
  uint32_t run(int stream) { return world.fake.run_launches(streams[stream]); }

  World& world;
  Diagnostics diagnostics;
  std::unique_ptr<CudaDevice> device;
  StreamHandle streams[2] = {};
  std::unique_ptr<StreamChain> chain;
};

TEST_CASE("calls on several streams run in their order") {
  World world({.deferred = true});
  {
    ChainedGpu gpu(world);
    gpu.call(0);
    gpu.call(1);  // waits for the host: nobody has marked the first one's end
    CHECK(gpu.run(1) == 1);
    CHECK(gpu.run(0) == 1);
    gpu.call(0);
    gpu.call(1);
    CHECK(gpu.run(1) == 1);  // not before that of stream 0
    CHECK(gpu.run(0) == 2);
    CHECK(gpu.run(1) == 2);
  }
  world.check_clean();
}

TEST_CASE("a stream may go, and another come at its handle's place") {
  World world({.deferred = true});
  {
    ChainedGpu gpu(world);
    gpu.call(0);
    gpu.device->destroy_stream(gpu.streams[0]);
    gpu.streams[0] = gpu.device->create_stream(gpu.diagnostics);
    gpu.call(0);
    gpu.call(1);
    CHECK(gpu.run(0) == 1);  // the fake drops what a stream still waits for
    gpu.device->destroy_stream(gpu.streams[1]);
    gpu.streams[1] = gpu.device->create_stream(gpu.diagnostics);
    gpu.call(0);
    CHECK(gpu.run(0) == 2);
  }
  world.check_clean();
}

TEST_CASE("calls of one capture get edges, and calls outside of it none") {
  World world;
  {
    ChainedGpu gpu(world);
    gpu.call(0);
    world.fake.begin_capture(abi::kCaptureModeGlobal, gpu.streams[0]);
    gpu.call(0);
    world.fake.fork_capture(gpu.streams[0], gpu.streams[1]);
    gpu.call(0);
    gpu.call(1);
    const auto& nodes = world.nodes;
    REQUIRE(nodes.size() == 4);
    const auto edges = world.fake.edges(nodes[3]);
    CHECK(std::find(edges.begin(), edges.end(), nodes[2]) != edges.end());
    world.fake.end_capture();
    gpu.call(0);
    world.fake.begin_capture(abi::kCaptureModeRelaxed, gpu.streams[1]);
    gpu.call(1);
    CHECK(world.fake.edges(world.nodes.back()).empty());
    world.fake.end_capture();
  }
  world.check_clean();
}

}  // namespace
}  // namespace mscclc::cuda
