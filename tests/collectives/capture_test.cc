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
#include "runtime/cuda/fake/test_world.h"

namespace mscclc::cuda {
namespace {

constexpr uint32_t kCapturing = 2;

/// One rank, a process of its own: its first calls are captured, on two streams. "": all was well.
std::string capture_first_calls(World& world, int mode, std::unique_ptr<Bootstrap> bootstrap) {
  Diagnostics diagnostics;
  const auto rank = static_cast<int>(bootstrap->rank());
  const std::shared_ptr<Device> device = world.open(rank, rank, diagnostics);
  const auto communicator = Communicator::create(std::move(bootstrap), device, {}, diagnostics);
  if (communicator == nullptr) return text_of(diagnostics);
  const auto collectives =
      Collectives::create(*communicator, builtin_library({}, diagnostics), {}, diagnostics);
  if (collectives == nullptr) return text_of(diagnostics);
  const auto memory = device->allocate(4096, "a buffer", diagnostics);
  const StreamHandle streams[2] = {device->create_stream(diagnostics),
                                   device->create_stream(diagnostics)};
  const CollectiveCall call{.kind = CollectiveKind::allreduce,
                            .count = 100,
                            .input = memory->data(),
                            .output = memory->data()};
  world.fake.begin_capture(mode, streams[0]);
  bool done = collectives->call(call, streams[0], diagnostics);
  world.fake.fork_capture(streams[0], streams[1]);
  done = done && collectives->call({.kind = CollectiveKind::barrier}, streams[1], diagnostics) &&
         collectives->call(call, streams[0], diagnostics);
  world.fake.end_capture();
  done = done && collectives->call(call, streams[1], diagnostics);
  for (const StreamHandle stream : streams) device->destroy_stream(stream);
  return done ? "" : text_of(diagnostics);
}

TEST_CASE("the first call of a plan may be captured, in every mode") {
  for (const int mode :
       {abi::kCaptureModeGlobal, abi::kCaptureModeThreadLocal, abi::kCaptureModeRelaxed}) {
    World world({.devices = 2});
    auto bootstraps = make_in_process_bootstraps(kCapturing, std::chrono::seconds(60));
    std::string said[kCapturing];
    std::vector<std::thread> threads;
    for (uint32_t r = 0; r < kCapturing; ++r) {
      threads.emplace_back([&, r, own = std::move(bootstraps[r])]() mutable {
        said[r] = capture_first_calls(world, mode, std::move(own));
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::string& one : said) CHECK(one == "");
    const auto captured = std::count_if(world.nodes.begin(), world.nodes.end(),
                                        [](abi::GraphNode node) { return node != nullptr; });
    CHECK(captured == 3 * kCapturing);
    CHECK(world.nodes.size() == 4 * kCapturing);
    world.check_clean();
  }
}

/// One rank: a call of a plan that is loaded, then one that is captured, of `count` elements. What
/// it hears.
std::string capture_other_call(World& world, uint64_t count, std::unique_ptr<Bootstrap> bootstrap) {
  Diagnostics diagnostics;
  const auto rank = static_cast<int>(bootstrap->rank());
  const std::shared_ptr<Device> device = world.open(rank, rank, diagnostics);
  const auto communicator = Communicator::create(std::move(bootstrap), device, {}, diagnostics);
  if (communicator == nullptr) return text_of(diagnostics);
  const auto collectives =
      Collectives::create(*communicator, builtin_library({}, diagnostics), {}, diagnostics);
  if (collectives == nullptr) return text_of(diagnostics);
  const auto memory = device->allocate(4096, "a buffer", diagnostics);
  const StreamHandle stream = device->create_stream(diagnostics);
  CollectiveCall call{.kind = CollectiveKind::allreduce,
                      .count = 100,
                      .input = memory->data(),
                      .output = memory->data()};
  world.fake.begin_capture(abi::kCaptureModeGlobal, stream);
  bool captured = collectives->call(call, stream, diagnostics);
  call.count = count;
  captured = captured && collectives->call(call, stream, diagnostics);
  world.fake.end_capture();
  // The first to come does not know yet: it hears of it from the last.
  if (captured) (void)communicator->bootstrap().barrier("captured", diagnostics);
  if (captured) (void)communicator->check(diagnostics);
  device->destroy_stream(stream);
  return text_of(diagnostics);
}

TEST_CASE("a captured call that differs is found when it is captured") {
  World world({.devices = 2});
  auto bootstraps = make_in_process_bootstraps(kCapturing, std::chrono::seconds(60));
  std::string said[kCapturing];
  std::vector<std::thread> threads;
  for (uint32_t r = 0; r < kCapturing; ++r) {
    threads.emplace_back([&, r, own = std::move(bootstraps[r])]() mutable {
      said[r] = capture_other_call(world, 100 - r, std::move(own));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& one : said) {
    INFO(one);
    CHECK(one.find("ranks launch different calls, which differ in the message size") !=
          std::string::npos);
  }
}

}  // namespace
}  // namespace mscclc::cuda
