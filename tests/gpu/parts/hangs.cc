// Plans that hang, and ranks that die: every rank says what it waited for, or who has died, soon
// enough, and its kernels end. Afterwards the GPUs are as good as before.
#include <fmt/format.h>

#include <csignal>
#include <cstdio>

#include "tests/gpu/parts.h"
#include "tests/gpu/parts/killed.h"
#include "tests/gpu/planted.h"
#include "tests/gpu/stage/graphs.h"

namespace mscclc::testing {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kWaits{2'000};
constexpr std::chrono::milliseconds kBound{5'000};  // beyond kWaits

std::string missing_part(const std::string& said, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    if (said.find(part) == std::string::npos) {
      return fmt::format("the report lacks \"{}\":\n{}", part, said);
    }
  }
  return "";
}

/// "" if the rank's calls end in a report that says what must be said.
std::string run_rank(Communicator& communicator, const PlantedHang& hang) {
  Diagnostics diagnostics;
  const uint32_t rank = communicator.rank();
  const Stream stream(communicator.device(), diagnostics);
  const auto loaded = LoadedCase::load(communicator, hang.plan, {.max_bytes = 4096}, diagnostics);
  if (!stream.get() || !loaded) return text(diagnostics);
  const auto call = loaded->call(
      {.bytes = 4096, .dtype = Dtype::f32, .op = hang.plan.ops.front(), .in_place = false},
      diagnostics);
  if (!call) return text(diagnostics);
  const auto begin = Clock::now();
  bool well = true;
  for (uint64_t i = 0; well && i < calls_until_all_wait(communicator.size()); ++i) {
    well = call->launch(stream.get(), diagnostics) &&
           communicator.synchronize(stream.get(), diagnostics);
  }
  const auto took = Clock::now() - begin;
  const std::string said = text(diagnostics);
  if (well) return "it has ended well";
  if (took > kWaits + kBound) return "it has ended too late:\n" + said;
  if (rank == 1) {
    fmt::print("rank 1, after {:.1f} s:\n{}", std::chrono::duration<double>(took).count(), said);
    std::fflush(stdout);
    return missing_part(said, hang.report);
  }
  return missing_part(said, {"error: ", fmt::format("rank {}, tb 0", rank), "waits for"});
}

bool check_planted(const StageOptions& options, const PlantedHang& hang) {
  const std::string fault = run_ranks(
      options, [&](Communicator& communicator) { return run_rank(communicator, hang); },
      Timeouts(options.patience, kWaits));
  fmt::print("hang, {}: {}\n", hang.plan.name, fault.empty() ? "right" : "FAILED\n" + fault);
  std::fflush(stdout);
  return fault.empty();
}

}  // namespace

bool check_hangs(const StageOptions& options) {
  const auto hangs = planted_hangs(options.ranks);
  if (!hangs) {
    fmt::print("{}\n", hangs.error().text());
    return false;
  }
  uint32_t right = 0, wrong = 0;
  for (const PlantedHang& hang : *hangs) {
    if (hang.plan.name.find(options.filter) == std::string::npos) continue;
    ++(check_planted(options, hang) ? right : wrong);
  }
  if (options.threads) {
    fmt::print("killed ranks: not tried, as ranks are threads\n");
  } else {
    for (const uint32_t victim : {options.ranks - 1, 0u}) {
      ++(check_killed(options, victim) ? right : wrong);
    }
  }
  StageOptions after = options;
  after.filter = "allreduce_1shot ";
  ++(check_plans(after) ? right : wrong);
  fmt::print("hangs at {}: {} right, {} wrong\n", text(options), right, wrong);
  return wrong == 0;
}

}  // namespace mscclc::testing
