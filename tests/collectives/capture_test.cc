// Collectives by name in captures, on the fake driver, which refuses what a capture forbids. No
// kernel runs there: what is put into the graph is looked at.
#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "runtime/api/builtin_library.h"
#include "runtime/api/collectives.h"
#include "runtime/api/communicator.h"
#include "runtime/api/in_process.h"
#include "tests/fakes/cuda/test_world.h"

namespace mscclc::cuda {
namespace {

constexpr uint32_t kCapturing = 2;

/// One rank, a process of its own, that can call collectives by name.
struct CapturedRank {
  CapturedRank(World& world, std::unique_ptr<Bootstrap> bootstrap) {
    const auto rank = static_cast<int>(bootstrap->rank());
    device = world.open(rank, rank, diagnostics);
    communicator = Communicator::create(std::move(bootstrap), device, {}, diagnostics);
    if (communicator == nullptr) return;
    collectives =
        Collectives::create(*communicator, builtin_library({}, diagnostics), {}, diagnostics);
    if (collectives != nullptr) memory = device->allocate(4096, "a buffer", diagnostics);
  }
  CollectiveCall call() const {
    return {.kind = CollectiveKind::allreduce,
            .count = 100,
            .input = memory->data(),
            .output = memory->data()};
  }
  StreamHandle stream() { return device->create_stream(diagnostics); }
  std::string said() const { return text_of(diagnostics); }

  Diagnostics diagnostics;
  std::shared_ptr<Device> device;
  std::unique_ptr<Communicator> communicator;
  std::unique_ptr<Collectives> collectives;
  std::unique_ptr<Memory> memory;  ///< nullptr: the rank is not there, as said() says
};

/// What body(rank, bootstrap) says on each rank, a thread each.
template <class Body>
std::vector<std::string> on_ranks(Body&& body) {
  auto bootstraps = make_in_process_bootstraps(kCapturing, std::chrono::seconds(300));
  std::vector<std::string> said(kCapturing);
  std::vector<std::thread> threads;
  for (uint32_t r = 0; r < kCapturing; ++r) {
    threads.emplace_back(
        [&, r, own = std::move(bootstraps[r])]() mutable { said[r] = body(r, std::move(own)); });
  }
  for (std::thread& thread : threads) thread.join();
  return said;
}

/// The first calls of a rank are captured, on two streams. "": all was well.
std::string capture_first_calls(World& world, int mode, std::unique_ptr<Bootstrap> bootstrap) {
  CapturedRank rank(world, std::move(bootstrap));
  if (rank.memory == nullptr) return rank.said();
  const StreamHandle streams[2] = {rank.stream(), rank.stream()};
  const CollectiveCall call = rank.call();
  const auto make = [&](const CollectiveCall& made, StreamHandle stream) {
    return rank.collectives->call(made, stream, rank.diagnostics);
  };
  world.fake.begin_capture(mode, streams[0]);
  bool done = make(call, streams[0]);
  world.fake.fork_capture(streams[0], streams[1]);
  done = done && make({.kind = CollectiveKind::barrier}, streams[1]) && make(call, streams[0]);
  world.fake.end_capture();
  done = done && make(call, streams[1]);
  for (const StreamHandle stream : streams) rank.device->destroy_stream(stream);
  return done ? "" : rank.said();
}

TEST_CASE("the first call of a plan may be captured, in every mode") {
  for (const int mode :
       {abi::kCaptureModeGlobal, abi::kCaptureModeThreadLocal, abi::kCaptureModeRelaxed}) {
    World world({.devices = 2});
    const auto said = on_ranks([&](uint32_t, std::unique_ptr<Bootstrap> bootstrap) {
      return capture_first_calls(world, mode, std::move(bootstrap));
    });
    for (const std::string& one : said) CHECK(one == "");
    const auto captured = std::count_if(world.nodes.begin(), world.nodes.end(),
                                        [](abi::GraphNode node) { return node != nullptr; });
    CHECK(captured == 3 * kCapturing);
    CHECK(world.nodes.size() == 4 * kCapturing);
    world.check_clean();
  }
}

/// A call of a plan that is loaded, then one of `count` elements, both captured. What the rank
/// hears.
std::string capture_other_call(World& world, uint64_t count, std::unique_ptr<Bootstrap> bootstrap) {
  CapturedRank rank(world, std::move(bootstrap));
  if (rank.memory == nullptr) return rank.said();
  const StreamHandle stream = rank.stream();
  CollectiveCall call = rank.call();
  world.fake.begin_capture(abi::kCaptureModeGlobal, stream);
  bool captured = rank.collectives->call(call, stream, rank.diagnostics);
  call.count = count;
  captured = captured && rank.collectives->call(call, stream, rank.diagnostics);
  world.fake.end_capture();
  // The first to come does not know yet: it hears of it from the last.
  if (captured) (void)rank.communicator->bootstrap().barrier("captured", rank.diagnostics);
  if (captured) (void)rank.communicator->check(rank.diagnostics);
  rank.device->destroy_stream(stream);
  return rank.said();
}

TEST_CASE("a captured call that differs is found when it is captured") {
  World world({.devices = 2});
  const auto said = on_ranks([&](uint32_t r, std::unique_ptr<Bootstrap> bootstrap) {
    return capture_other_call(world, 100 - r, std::move(bootstrap));
  });
  for (const std::string& one : said) {
    INFO(one);
    CHECK(one.find("ranks launch different calls, which differ in the message size") !=
          std::string::npos);
  }
}

}  // namespace
}  // namespace mscclc::cuda
