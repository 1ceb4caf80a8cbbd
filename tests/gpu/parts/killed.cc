#include "tests/gpu/parts/killed.h"

#include <fmt/format.h>

#include <csignal>
#include <cstdio>

#include "tests/gpu/cases.h"
#include "tests/gpu/stage/graphs.h"
#include "tests/helpers/runtime/shared_value.h"

namespace mscclc::testing {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kCallsBefore = 2'000;
constexpr std::chrono::milliseconds kBound{5'000};
constexpr std::chrono::milliseconds kWaits{600'000};  // deaths are noticed without it

/// When the victim died, by the clock that processes share.
using TimeOfDeath = SharedValue;

int64_t now() { return Clock::now().time_since_epoch().count(); }

/// Calls until something is wrong; the victim dies with calls under way.
void call_on(Communicator& communicator, CheckedCall& call, StreamHandle stream, bool victim,
             TimeOfDeath& death, Diagnostics& diagnostics) {
  for (uint64_t i = 0;; ++i) {
    if (!call.launch(stream, diagnostics)) return;
    if (victim && i == kCallsBefore) {
      death.at() = now();
      raise(SIGKILL);
    }
    if (i % 16 == 15 && !communicator.synchronize(stream, diagnostics)) return;
  }
}

std::string run_rank(Communicator& communicator, const Case& c, uint32_t victim,
                     TimeOfDeath& death) {
  Diagnostics diagnostics;
  const Stream stream(communicator.device(), diagnostics);
  const auto loaded = LoadedCase::load(communicator, c, {.max_bytes = 4096}, diagnostics);
  if (!stream.get() || !loaded) return text(diagnostics);
  const auto call = loaded->call({.bytes = 4096, .dtype = Dtype::f32}, diagnostics);
  if (!call) return text(diagnostics);
  call_on(communicator, *call, stream.get(), communicator.rank() == victim, death, diagnostics);
  (void)communicator.synchronize(stream.get(), diagnostics);  // no kernel is left behind
  const double took = static_cast<double>(now() - death.at()) * 1e-9;
  const std::string said = text(diagnostics);
  if (death.at() == 0) return "calls have failed before the rank died:\n" + said;
  fmt::print("rank {}, {:.3f} s after the death of rank {}:\n{}", communicator.rank(), took, victim,
             said);
  std::fflush(stdout);
  if (took > std::chrono::duration<double>(kBound).count()) return "it has ended too late";
  return said.find(fmt::format("rank {}", victim)) != std::string::npos &&
                 said.find("died") != std::string::npos
             ? ""
             : "the report does not say that the rank has died";
}

}  // namespace

bool check_killed(const StageOptions& options, uint32_t victim) {
  const auto c = library_case("allreduce_2shot_packets", options.ranks);
  TimeOfDeath death;
  if (!c || !death.mapped()) {
    fmt::print("killed rank {}: FAILED\n{}\n", victim, c ? "" : c.error().text());
    return false;
  }
  const std::string fault = run_ranks(
      options,
      [&](Communicator& communicator) { return run_rank(communicator, *c, victim, death); },
      Timeouts(options.patience, kWaits));
  // What the parent saw of the victim is all that may be said.
  const std::string expected = fmt::format("rank {}: killed by signal {}\n", victim, SIGKILL);
  const bool right = fault == expected;
  fmt::print("killed rank {}: {}\n", victim, right ? "right" : "FAILED\n" + fault);
  std::fflush(stdout);
  return right;
}

}  // namespace mscclc::testing
