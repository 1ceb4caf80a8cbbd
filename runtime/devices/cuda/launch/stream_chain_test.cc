// Calls of several streams on the fake driver: what waits for what.
#include "runtime/devices/cuda/launch/stream_chain.h"

#include <thread>

#include "tests/fakes/cuda/test_world.h"

namespace mscclc::cuda {
namespace {

/// A GPU with three streams; launches are put on them as a communicator does it.
struct ChainedGpu {
  explicit ChainedGpu(World& world, Replays replays = Replays::ignored)
      : world(world), device(world.open(0, 0)) {
    for (StreamHandle& stream : streams) stream = device->create_stream(diagnostics);
    chain = device->chain_streams(replays, diagnostics);
  }
  ~ChainedGpu() {
    chain.reset();
    for (const StreamHandle stream : streams) device->destroy_stream(stream);
    CHECK(text_of(diagnostics) == "");
  }
  void call(int stream) {
    REQUIRE(chain->follow(streams[stream], diagnostics));
    REQUIRE(device->launch(launch_of(1, 128, 132), streams[stream], diagnostics));
    REQUIRE(chain->put_last(streams[stream], diagnostics));
  }
  /// What is said of a call that cannot be put in order.
  std::string refused(int stream) {
    Diagnostics said;
    CHECK_FALSE(chain->follow(streams[stream], said));
    return text_of(said);
  }
  /// Another stream in place of one, which may be the default stream.
  void replace(int stream, const std::function<StreamHandle()>& make) {
    const CurrentContext current(*device->context());
    device->destroy_stream(streams[stream]);
    streams[stream] = make();
  }
  void use_default_stream(int stream) {
    replace(stream, [&] {
      world.fake.create_default_stream();
      return nullptr;
    });
  }
  void begin_capture(int stream, int mode = abi::kCaptureModeThreadLocal) {
    world.fake.begin_capture(mode, streams[stream]);
  }
  /// A graph with two calls.
  abi::Graph graph() {
    begin_capture(0);
    call(0);
    call(0);
    return world.fake.end_capture();
  }
  uint32_t run(int stream) { return world.fake.run_launches(streams[stream]); }

  World& world;
  Diagnostics diagnostics;
  std::unique_ptr<CudaDevice> device;
  StreamHandle streams[3] = {};
  std::unique_ptr<StreamChain> chain;
};

/// After a call on stream 0: those that follow on both streams run in their order.
void check_in_order(ChainedGpu& gpu) {
  gpu.call(1);  // waits for the host: nothing has marked the first one's end
  CHECK(gpu.run(1) == 1);
  CHECK(gpu.run(0) == 1);
  gpu.call(0);
  gpu.call(1);
  CHECK(gpu.run(1) == 1);  // not before that of stream 0
  CHECK(gpu.run(0) == 2);
  CHECK(gpu.run(1) == 2);
}

TEST_CASE("calls on several streams run in their order") {
  World world({.deferred = true});
  {
    ChainedGpu gpu(world);
    gpu.call(0);
    check_in_order(gpu);
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

constexpr char kCaptured[] =
    "cuda: cannot order calls of several streams: this process captures a stream of cuda:0 in a "
    "CUDA graph, and the driver cannot wait for the GPU meanwhile\n";
constexpr char kBroken[] = "  that has broken the capture, which will end with an error\n";
constexpr char kRemedy[] =
    "  outside of captures, make the first call of a communicator on each stream, and destroy "
    "communicators\n";

TEST_CASE("the first call on a second stream says what it breaks if a third one is captured") {
  for (const int mode :
       {abi::kCaptureModeGlobal, abi::kCaptureModeThreadLocal, abi::kCaptureModeRelaxed}) {
    World world({.deferred = true});
    {
      ChainedGpu gpu(world);
      gpu.call(0);
      gpu.begin_capture(2, mode);
      CHECK(gpu.refused(1) == std::string(kCaptured) + kBroken + kRemedy);
      CHECK(gpu.refused(2).find("cannot order calls") != std::string::npos);  // it is no use now
      CHECK(world.fake.end_capture() == nullptr);
      check_in_order(gpu);
    }
    world.check_clean();
  }
}

TEST_CASE("where the driver can say that a stream is captured, that is not broken") {
  for (const bool on_default : {false, true}) {
    World world({.deferred = true});
    {
      ChainedGpu gpu(world);
      if (on_default) gpu.use_default_stream(0);
      gpu.replace(2, [&] { return world.fake.create_blocking_stream(); });
      gpu.call(0);
      gpu.begin_capture(2);
      CHECK(gpu.refused(1) == std::string(kCaptured) + kRemedy);
      gpu.call(2);
      CHECK(world.fake.end_capture() != nullptr);
      CHECK(world.fake.calls("CtxSynchronize") == 0);
      gpu.call(1);
      CHECK(gpu.run(1) == (on_default ? 0 : 1));
      CHECK(gpu.run(0) == 1);
      CHECK(gpu.run(1) == 1);
    }
    world.check_clean();
  }
}

TEST_CASE("where the first stream is the default stream, the second one waits, and not the host") {
  World world({.deferred = true});
  {
    ChainedGpu gpu(world);
    gpu.use_default_stream(0);
    gpu.call(0);
    gpu.begin_capture(2);
    gpu.call(1);
    CHECK(gpu.run(1) == 0);
    CHECK(gpu.run(0) == 1);
    CHECK(gpu.run(1) == 1);
    gpu.call(2);
    CHECK(world.fake.end_capture() != nullptr);
    CHECK(world.fake.calls("CtxSynchronize") == 0);
  }
  world.check_clean();
}

TEST_CASE("another thread's default stream is not taken for that of the last call") {
  World world({.deferred = true});
  {
    ChainedGpu gpu(world);
    gpu.use_default_stream(0);
    gpu.call(0);
    world.fake.rename_stream(nullptr);
    gpu.call(1);
    CHECK(world.fake.calls("CtxSynchronize") == 1);
    CHECK(gpu.run(1) == 1);
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

/// So many calls that the next one has no mark of its own, if there is one stream and no graph.
void make_first_calls(ChainedGpu& gpu, int stream) {
  for (uint32_t i = 0; i < CudaStreamChain::kMarkedAtFirst; ++i) gpu.call(stream);
}

TEST_CASE("a replay waits for a call that was made before the first capture") {
  for (const int captured : {0, 2}) {  // the call's stream, and another
    World world({.deferred = true});
    {
      ChainedGpu gpu(world, Replays::ordered);
      gpu.call(0);
      gpu.begin_capture(captured);
      gpu.call(captured);
      world.fake.replay(world.fake.end_capture(), gpu.streams[1]);
      CHECK(gpu.run(1) == 0);
      CHECK(gpu.run(0) == 1);
      CHECK(gpu.run(1) == 1);
      CHECK(world.fake.calls("CtxSynchronize") == 0);
    }
    world.check_clean();
  }
}

TEST_CASE(
    "a replay waits for the last of many calls on a default stream before the first capture") {
  World world({.deferred = true});
  {
    ChainedGpu gpu(world, Replays::ordered);
    gpu.use_default_stream(0);
    make_first_calls(gpu, 0);
    gpu.run(0);
    gpu.call(0);
    gpu.begin_capture(2);
    gpu.call(2);
    world.fake.replay(world.fake.end_capture(), gpu.streams[1]);
    CHECK(gpu.run(1) == 0);
    CHECK(gpu.run(0) == CudaStreamChain::kMarkedAtFirst + 1);
    CHECK(gpu.run(1) == 1);
    CHECK(world.fake.calls("CtxSynchronize") == 0);
  }
  world.check_clean();
}

TEST_CASE("a graph waits for calls and graphs that were made before its launch") {
  World world({.deferred = true});
  {
    ChainedGpu gpu(world, Replays::ordered);
    gpu.call(0);
    const abi::Graph first = gpu.graph();
    const abi::Graph second = gpu.graph();
    world.fake.replay(first, gpu.streams[1]);
    world.fake.replay(second, gpu.streams[2]);
    CHECK(gpu.run(2) == 0);
    CHECK(gpu.run(1) == 0);
    CHECK(gpu.run(0) == 1);
    CHECK(gpu.run(2) == 0);
    CHECK(gpu.run(1) == 2);
    CHECK(gpu.run(2) == 2);
  }
  world.check_clean();
}

/// A call after the replay of a graph of two waits for it.
void check_replay(World& world, ChainedGpu& gpu, abi::Graph graph) {
  world.fake.replay(graph, gpu.streams[1]);
  gpu.call(0);
  CHECK(gpu.run(0) == 0);
  CHECK(gpu.run(1) == 2);
  CHECK(gpu.run(0) == 1);
}

TEST_CASE("a replay begins after the calls before its launch, and before those after it") {
  World world({.deferred = true});
  {
    ChainedGpu gpu(world, Replays::ordered);
    const abi::Graph graph = gpu.graph();
    gpu.call(0);
    world.fake.replay(graph, gpu.streams[1]);
    CHECK(gpu.run(1) == 0);
    CHECK(gpu.run(0) == 1);
    gpu.call(0);
    CHECK(gpu.run(0) == 1);
    CHECK(gpu.run(1) == 2);
    CHECK(gpu.run(0) == 2);
    world.fake.replay(graph, gpu.streams[0]);  // two replays of one graph, on two streams
    world.fake.replay(graph, gpu.streams[1]);
    CHECK(gpu.run(1) == 2);
    CHECK(gpu.run(0) == 4);
    CHECK(gpu.run(1) == 4);
  }
  world.check_clean();
}

TEST_CASE("a capture has one wait and one record, and nothing between its calls") {
  World world({.deferred = true});
  {
    ChainedGpu gpu(world, Replays::ordered);
    const std::vector<abi::GraphNode> events = world.fake.event_nodes(gpu.graph());
    REQUIRE(events.size() == 2);
    using Nodes = std::vector<abi::GraphNode>;
    CHECK(world.fake.edges(events[0]).empty());
    CHECK(world.fake.edges(world.nodes[0]) == Nodes{events[0]});
    CHECK(world.fake.edges(world.nodes[1]) == Nodes{world.nodes[0]});
    CHECK(world.fake.edges(events[1]) == Nodes{world.nodes[1]});
  }
  world.check_clean();
}

TEST_CASE("a capture that allocates memory, and so keeps all edges, ends with one record as well") {
  World world({.keeps_edges = true, .deferred = true});
  {
    ChainedGpu gpu(world, Replays::ordered);
    const abi::Graph graph = gpu.graph();
    const std::vector<abi::GraphNode> events = world.fake.event_nodes(graph);
    REQUIRE(events.size() == 2);
    CHECK(world.fake.edges(events[1]) ==
          std::vector<abi::GraphNode>{world.nodes[0], world.nodes[1]});
    check_replay(world, gpu, graph);
  }
  world.check_clean();
}

TEST_CASE("captures that take turns have an order each") {
  World world({.deferred = true});
  {
    ChainedGpu gpu(world, Replays::ordered);
    gpu.begin_capture(0);
    gpu.call(0);
    std::thread([&] {
      gpu.begin_capture(1);
      gpu.call(1);
    }).join();
    gpu.call(0);
    const std::vector<abi::GraphNode> events = world.fake.event_nodes(world.fake.end_capture());
    REQUIRE(events.size() == 2);
    CHECK(world.fake.edges(events[1]) == std::vector<abi::GraphNode>{world.nodes[2]});
  }
}

TEST_CASE("a replay is ordered, too, where the driver does not say what calls end with") {
  World world({.deferred = true});
  {
    ChainedGpu gpu(world, Replays::ordered);
    world.fake.options().lossy = true;
    const abi::Graph graph = gpu.graph();
    world.fake.options().lossy = false;
    check_replay(world, gpu, graph);
  }
  world.check_clean();
}

TEST_CASE("a capture between calls of two streams does not part them") {
  World world({.deferred = true});
  {
    ChainedGpu gpu(world, Replays::ordered);
    make_first_calls(gpu, 0);
    gpu.run(0);
    gpu.call(0);
    (void)gpu.graph();
    gpu.call(1);  // waits for the host: the capture's event does not mark the first one's end
    CHECK(world.fake.calls("CtxSynchronize") == 1);
    gpu.call(0);
    CHECK(gpu.run(0) == CudaStreamChain::kMarkedAtFirst + 1);
    CHECK(gpu.run(1) == 1);
    CHECK(gpu.run(0) == CudaStreamChain::kMarkedAtFirst + 2);
    CHECK(world.fake.calls("CtxSynchronize") == 1);
  }
  world.check_clean();
}

TEST_CASE("a mark on the default stream comes after a replay that the event stood for") {
  World world({.deferred = true});
  {
    ChainedGpu gpu(world, Replays::ordered);
    gpu.use_default_stream(0);
    gpu.call(0);
    gpu.begin_capture(2);
    gpu.call(2);
    world.fake.replay(world.fake.end_capture(), gpu.streams[2]);
    gpu.call(1);
    CHECK(gpu.run(0) == 1);
    CHECK(gpu.run(1) == 0);
    CHECK(gpu.run(2) == 1);
    CHECK(gpu.run(0) == 1);
    CHECK(gpu.run(1) == 1);
    CHECK(world.fake.calls("CtxSynchronize") == 0);
  }
  world.check_clean();
}

TEST_CASE("what a call asks of the driver, before and after the first capture") {
  World world;
  {
    ChainedGpu gpu(world, Replays::ordered);
    const std::vector<std::string> functions = {"StreamGetCaptureInfo", "StreamGetId",
                                                "StreamWaitEvent",      "EventRecord",
                                                "EventQuery",           "StreamIsCapturing"};
    const auto counts = [&] {
      std::vector<uint64_t> calls;
      for (const std::string& function : functions) calls.push_back(world.fake.calls(function));
      return calls;
    };
    const auto calls_of_one = [&] {
      gpu.call(0);  // the first on a stream finds its multiprocessors
      const std::vector<uint64_t> before = counts();
      gpu.call(0);
      std::vector<uint64_t> calls = counts();
      for (size_t i = 0; i < calls.size(); ++i) calls[i] -= before[i];
      return calls;
    };
    CHECK(calls_of_one() == std::vector<uint64_t>{1, 1, 0, 1, 0, 0});
    make_first_calls(gpu, 0);
    CHECK(calls_of_one() == std::vector<uint64_t>{1, 1, 0, 0, 0, 0});
    (void)gpu.graph();
    CHECK(calls_of_one() == std::vector<uint64_t>{1, 1, 1, 1, 0, 0});
  }
  world.check_clean();
}

TEST_CASE("a launch believes nothing that a chain has found out for another") {
  World world;
  {
    ChainedGpu gpu(world, Replays::ordered);
    const auto launch = [&](int stream) {
      const uint64_t before = world.fake.calls("StreamGetId");
      REQUIRE(gpu.device->launch(launch_of(1, 128, 132), gpu.streams[stream], gpu.diagnostics));
      return world.fake.calls("StreamGetId") - before;
    };
    REQUIRE(gpu.chain->follow(gpu.streams[0], gpu.diagnostics));
    CHECK(launch(1) == 1);
    REQUIRE(gpu.chain->follow(gpu.streams[0], gpu.diagnostics));
    CHECK(launch(0) == 0);
    CHECK(launch(0) == 1);
    REQUIRE(gpu.chain->follow(gpu.streams[0], gpu.diagnostics));
    REQUIRE(gpu.chain->put_last(gpu.streams[0], gpu.diagnostics));
    CHECK(launch(0) == 1);
  }
  world.check_clean();
}

TEST_CASE("where replays are ignored graphs have no events, and calls no end") {
  World world({.deferred = true});
  {
    ChainedGpu gpu(world);
    CHECK(world.fake.event_nodes(gpu.graph()).empty());
    const uint64_t before = world.fake.calls("EventRecord");
    gpu.call(0);
    CHECK(world.fake.calls("EventRecord") == before);
  }
  world.check_clean();
}

}  // namespace
}  // namespace mscclc::cuda
