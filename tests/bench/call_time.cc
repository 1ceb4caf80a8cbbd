// What a call by name costs the processor, beside the device's own part: the choice of its plan,
// its binding, its launch. Processor time of rank 0 of four, in ns; the device does nothing.
//
//   bazel run //tests/bench:call_time
//
// "choice": of a plan that was chosen before. "prepare": choice, checks, binding to buffers:
// "again", as the call before, and "other", with other buffers each time. "launch": of a prepared
// call. "call": prepare and launch, as a program makes them. "turns": the same, of two sizes in
// turn, which the ranks compare each time.
#include <fmt/format.h>

#include "runtime/api/builtin_library.h"
#include "runtime/api/collectives.h"
#include "runtime/api/plan_registry.h"
#include "tests/bench/program_taker.h"
#include "tests/runtime/ranks.h"

namespace mscclc {
namespace {

constexpr uint32_t kRanks = 4;
constexpr uint64_t kMax = 1 << 20;

struct Times {
  double choice = 0, again = 0, other = 0, launch = 0, call = 0, turns = 0;
};

/// One collective of so many elements a rank. All ranks do the same: they compare their calls.
bool measure(Collectives& collectives, const CollectiveCall& call, uint8_t* memory, Times& times,
             Diagnostics& diagnostics) {
  StreamHandle stream = &collectives;
  bool right = collectives.call(call, stream, diagnostics);  // loads the plan
  times.choice = testing::least_microseconds(
      [&](int) { right &= collectives.choose(call, false, nullptr, diagnostics) != nullptr; });
  times.again = testing::least_microseconds(
      [&](int) { right &= static_cast<bool>(collectives.prepare(call, stream, diagnostics)); });
  CollectiveCall moved = call;
  times.other = testing::least_microseconds([&](int i) {
    moved.input = memory + 16 * i;
    right &= static_cast<bool>(collectives.prepare(moved, stream, diagnostics));
  });
  const ReadyCall ready = collectives.prepare(call, stream, diagnostics);
  times.launch =
      testing::least_microseconds([&](int) { right &= collectives.launch(ready, diagnostics); });
  times.call = testing::least_microseconds(
      [&](int) { right &= collectives.call(call, stream, diagnostics); });
  CollectiveCall shorter = call;
  --shorter.count;
  times.turns = testing::least_microseconds(
      [&](int i) { right &= collectives.call(i % 2 == 0 ? shorter : call, stream, diagnostics); });
  return collectives.communicator().bootstrap().barrier("measured", diagnostics) && right;
}

std::string run_rank(Communicator& communicator, const std::shared_ptr<PlanProvider>& plans) {
  Diagnostics diagnostics;
  const auto collectives = Collectives::create(communicator, plans, {}, diagnostics);
  const auto memory = communicator.device().allocate(4 * kMax, "buffers", diagnostics);
  if (collectives == nullptr || memory == nullptr) return testing::text(diagnostics);
  for (const CollectiveKind kind :
       {CollectiveKind::allreduce, CollectiveKind::allgather, CollectiveKind::reducescatter,
        CollectiveKind::alltoall, CollectiveKind::broadcast}) {
    for (const uint64_t bytes : {uint64_t{4096}, kMax / kRanks}) {
      const CollectiveCall call{.kind = kind,
                                .count = bytes / sizeof(float),
                                .input = memory->data(),
                                .output = memory->data() + 2 * kMax};
      Times t;
      if (!measure(*collectives, call, memory->data(), t, diagnostics)) {
        return testing::text(diagnostics);
      }
      if (communicator.rank() != 0) continue;
      fmt::print("{:<14} {:>8} {:>8.0f} {:>8.0f} {:>8.0f} {:>8.0f} {:>8.0f} {:>8.0f}\n", name(kind),
                 bytes, 1e3 * t.choice, 1e3 * t.again, 1e3 * t.other, 1e3 * t.launch, 1e3 * t.call,
                 1e3 * t.turns);
    }
  }
  return "";
}

int run() {
  Diagnostics diagnostics;
  const std::shared_ptr<PlanProvider> plans =
      PlanRegistry::create({.library = builtin_library({}, diagnostics)}, diagnostics);
  if (plans == nullptr) return 1;
  fmt::print("{:<14} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}\n", "ns", "bytes", "choice", "again",
             "other", "launch", "call", "turns");
  const auto open = [](uint32_t rank, Diagnostics& d) -> std::unique_ptr<Device> {
    return std::make_unique<testing::ProgramTaker>(testing::open_host(rank, d));
  };
  const std::string said = testing::run_threads(
      kRanks, [&](Communicator& communicator) { return run_rank(communicator, plans); }, {}, open);
  fmt::print(stderr, "{}", said);
  return said.empty() ? 0 : 1;
}

}  // namespace
}  // namespace mscclc

int main() { return mscclc::run(); }
