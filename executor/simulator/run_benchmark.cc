// How long runs on the simulator take: a run as a whole (memory, filling, checking) and its
// call alone, over repeated runs of one runner.
// `bazel run -c opt //executor/simulator:run_benchmark`
#include <fmt/format.h>

#include <chrono>

#include "executor/simulator/run.h"
#include "executor/testing/test_plans.h"

namespace mscclc {
namespace {

using testing::one_shot;
using testing::two_shot;

double now() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

void measure(const std::string& what, const Program& program, const RunSpec& spec, int times) {
  Diagnostics diagnostics;
  const double start = now();
  Simulator runner(program);
  bool right = runner.run(spec, diagnostics).status == RunStatus::right;
  const double warm = now();
  double calls = 0;
  for (int i = 0; i < times; ++i) {
    const RunResult result = runner.run(spec, diagnostics);
    right &= result.status == RunStatus::right;
    calls += result.seconds * spec.iterations;
  }
  const double ms = 1e3 / times;
  fmt::print("{:<44} first {:8.3f} ms, then {:8.3f} ms, calls {:8.3f} ms{}\n", what,
             (warm - start) * 1e3, (now() - warm) * ms, calls * ms, right ? "" : " WRONG");
}

void run() {
  for (const PacketFormatInfo& f : packet_formats()) {
    measure(fmt::format("one-shot, 8 ranks, 1 MiB, {}", f.name), one_shot(8, 8, f.format).program,
            {.bytes = 1 << 20}, 20);
  }
  const Program small = one_shot(8, 8, PacketFormat::LL16).program;
  for (const uint64_t seed : {0, 1, 2, 3}) {
    measure(fmt::format("one-shot, 8 ranks, 1 KiB, seed {}", seed), small,
            {.bytes = 1 << 10, .schedule_seed = seed}, 1000);
    measure(fmt::format("one-shot, 8 ranks, 64 KiB, seed {}", seed), small,
            {.bytes = 1 << 16, .schedule_seed = seed}, 100);
  }
  measure("one-shot, 8 ranks, 64 KiB, bf16", small, {.bytes = 1 << 16, .dtype = Dtype::bf16}, 100);
  measure("one-shot, 8 ranks, 64 KiB, e4m3", small, {.bytes = 1 << 16, .dtype = Dtype::e4m3}, 100);
  measure("one-shot, 16 ranks, 1 KiB", one_shot(16, 8, PacketFormat::LL16).program,
          {.bytes = 1 << 10}, 1000);
  const Program large = two_shot(8).program;
  measure("two-shot, 8 ranks, 1 MiB", large, {.bytes = 1 << 20}, 100);
  measure("two-shot, 8 ranks, 1 MiB, bf16", large, {.bytes = 1 << 20, .dtype = Dtype::bf16}, 100);
  measure("two-shot, 8 ranks, 1 MiB, seed 1", large, {.bytes = 1 << 20, .schedule_seed = 1}, 100);
  const Program wide = two_shot(16).program;
  for (const uint64_t seed : {0, 1, 2, 3}) {
    measure(fmt::format("two-shot, 16 ranks, 1 KiB, seed {}", seed), wide,
            {.bytes = 1 << 10, .schedule_seed = seed}, 1000);
  }
}

}  // namespace
}  // namespace mscclc

int main() { mscclc::run(); }
