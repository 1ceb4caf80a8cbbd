#include "tests/nodes/mixed_faults.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <random>
#include <thread>

#include "runtime/support/process/proc.h"
#include "tests/helpers/runtime/descriptors.h"
#include "tests/helpers/runtime/shared_value.h"
#include "tests/nodes/fake_wire.h"
#include "tests/nodes/far_job.h"

namespace mscclc::testing {
namespace {

constexpr const char* kPrograms[] = {"allgather_hier",
                                     "allgather_hier_packets",
                                     "allgather_nodes",
                                     "allreduce_hier",
                                     "allreduce_hier_2shot",
                                     "allreduce_hier_packets",
                                     "allreduce_hier_pipeline",
                                     "allreduce_nodes",
                                     "alltoall_hier",
                                     "alltoall_hier_packets",
                                     "alltoall_nodes",
                                     "broadcast_hier",
                                     "broadcast_hier_packets",
                                     "broadcast_nodes",
                                     "reduce_nodes",
                                     "reducescatter_hier",
                                     "reducescatter_hier_packets",
                                     "reducescatter_nodes",
                                     "sendrecv_hier_packets"};

constexpr const char* kKinds[] = {"lossy", "killed", "cut", "paused"};
constexpr size_t kDrawnKinds = 3;  ///< draw_faults()
constexpr std::chrono::seconds kLimitsWithPauses{60};
constexpr uint32_t kLongestPauseMs = 8000;

/// The ranks of which the fault takes the word from `rank`.
std::vector<uint32_t> gone(const FaultTrial& trial, uint32_t rank) {
  if (trial.kind == FaultKind::killed) return {trial.victim};
  if (trial.kind == FaultKind::lossy || trial.kind == FaultKind::paused) return {};
  return rank < FarJob::kOnNode ? std::vector<uint32_t>{2, 3} : std::vector<uint32_t>{0, 1};
}

/// A rank that ends because of another one ends its lanes, which its peers may see before they hear
/// of that one.
std::vector<uint32_t> may_be_named(const FaultTrial& trial, uint32_t rank) {
  if (trial.kind != FaultKind::killed) return gone(trial, rank);
  std::vector<uint32_t> others;
  for (uint32_t r = 0; r < FarJob::kRanks; ++r) {
    if (r != rank) others.push_back(r);
  }
  return others;
}

/// Loads and calls again until all pauses are over, so that each is one of a rank that meets, loads
/// or calls.
RankBody until_over(const RankBody& calls, const FaultTrial& trial, SharedValue& over) {
  return [&, calls](Communicator& communicator) -> std::string {
    for (;;) {
      if (std::string said = calls(communicator); !said.empty()) return said;
      Diagnostics diagnostics;
      const bool all = over.at() == static_cast<int64_t>(trial.pauses.size());
      std::vector<std::vector<uint8_t>> seen;
      if (!communicator.bootstrap().all_gather(std::vector<uint8_t>{all}, "pauses", seen,
                                               diagnostics)) {
        return text(diagnostics);
      }
      if (std::ranges::count(seen, std::vector<uint8_t>{1}) == FarJob::kRanks) return "";
    }
  };
}

/// The calls, of which the victim does not see the end if the moment comes before it.
RankBody body_of(const FaultTrial& trial, const std::atomic<uint64_t>& passed, SharedValue& over) {
  const RankBody calls = far_calls(trial.program, trial.sizes, trial.times);
  if (trial.kind == FaultKind::paused) return until_over(calls, trial, over);
  if (trial.kind != FaultKind::killed) return calls;
  return [&, calls](Communicator& communicator) {
    if (communicator.rank() == trial.victim) {
      std::thread([&] {
        while (passed < trial.moment) {
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        ::raise(SIGKILL);
      }).detach();
    }
    return calls(communicator);
  };
}

void set(FarNetwork::Faults& faults, const FaultTrial& trial) {
  faults.delay_us = trial.delay_us;
  faults.lost = trial.lost;
  faults.reordered = trial.reordered;
  if (trial.kind == FaultKind::cut) faults.cut_after = trial.moment;
}

void set(verbs::fake::Wire& wire, const FaultTrial& trial) {
  wire.lost = trial.lost;
  wire.again_us = trial.delay_us;
  wire.silent = trial.silent;
  if (trial.kind == FaultKind::cut) wire.cut_after = trial.moment;
}

/// Stops a process for a while, and makes sure that it was.
void pause(pid_t process, const Pause& how) {
  ::usleep(how.begin_us);
  for (;;) {
    ::kill(process, SIGSTOP);
    const auto facts = facts_of(process);
    if (!facts || facts->state == 'T') break;
    ::usleep(100);
  }
  ::usleep(1000 * how.ms);
  ::kill(process, SIGCONT);
}

/// In the process of a rank: a child stops it and lets it go on.
void begin_pauses(const FaultTrial& trial, uint32_t rank, SharedValue& over) {
  const pid_t stopped = ::getpid();
  if (::fork() != 0) return;
  ::close_range(0, ~0u, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // the rank's number may be given again
  for (const Pause& how : trial.pauses) {
    if (how.rank != rank) continue;
    pause(stopped, how);
    ++over.at();
  }
  ::_exit(0);
}

FarPlace with_pauses(FarPlace place, const FaultTrial& trial, SharedValue& over) {
  if (trial.kind != FaultKind::paused) return place;
  place.timeout = kLimitsWithPauses;
  place.enter = [&, enter = place.enter](uint32_t rank) {
    if (enter) enter(rank);
    begin_pauses(trial, rank, over);
  };
  return place;
}

std::vector<std::string> run_trial(const FaultTrial& trial, SharedValue& over,
                                   std::string& left_out) {
  const auto silence = trial.kind == FaultKind::cut      ? trial.slowness * FarJob::kShort
                       : trial.kind == FaultKind::paused ? kLimitsWithPauses
                                                         : FarJob::kLong;
  if (trial.verbs) {
    FakeWire wire;
    set(wire.wire(), trial);
    return run_far_ranks(with_pauses(wire.place(), trial, over),
                         body_of(trial, wire.wire().passed, over), silence);
  }
  FarNetwork network;
  left_out = network.make(FarJob::kNodes);
  if (!left_out.empty()) return {};
  set(network.faults(), trial);
  return run_far_ranks(with_pauses(place_in(network), trial, over),
                       body_of(trial, network.faults().passed, over), silence);
}

/// Judges what one rank has said.
void judge(const FaultTrial& trial, uint32_t rank, const std::string& said, FaultOutcome& outcome) {
  if (said.empty()) return;
  outcome.right = false;
  if (trial.kind == FaultKind::killed && rank == trial.victim && said == "it ended with -9") return;
  outcome.hung |= said == "it has not ended";
  const size_t leaks = said.find("it leaves ");
  if (leaks != std::string::npos) outcome.leaked += std::stoul(said.substr(leaks + 10));
  if (leaks != std::string::npos || !blames_any(said, may_be_named(trial, rank))) {
    outcome.wrong += fmt::format("rank {}: {}\n", rank, said);
  } else if (!blames_any(said, gone(trial, rank))) {
    ++outcome.not_the_victim;
  }
}

/// Children of this process that have not been waited for.
uint64_t children() {
  uint64_t count = 0;
  while (::waitpid(-1, nullptr, WNOHANG) > 0) ++count;
  return errno == ECHILD ? count : count + 1;
}

}  // namespace

FaultTrial draw_faults(uint64_t seed, bool verbs) {
  std::mt19937_64 random(seed);
  const auto below = [&](uint64_t n) { return random() % n; };
  FaultTrial trial;
  trial.kind = static_cast<FaultKind>(seed % kDrawnKinds);
  trial.program = kPrograms[below(std::size(kPrograms))];
  for (uint64_t i = 1 + below(3); i > 0; --i) trial.sizes.push_back(8 * below(1 << below(18)));
  trial.times = static_cast<uint32_t>(1 + below(trial.kind == FaultKind::lossy ? 4 : 40));
  trial.delay_us = static_cast<uint32_t>(below(1000));
  trial.lost = static_cast<uint32_t>(below(20));
  trial.reordered = static_cast<uint32_t>(below(100));
  trial.victim = static_cast<uint32_t>(below(FarJob::kRanks));
  trial.moment = 50 + below(1000);
  if (!verbs) return trial;
  trial.verbs = true;
  trial.delay_us = static_cast<uint32_t>(1000 + below(20'000));
  trial.lost = static_cast<uint32_t>(below(100));
  trial.moment = below(200);
  trial.silent = trial.kind == FaultKind::cut && below(2) == 0;
  return trial;
}

FaultTrial draw_pauses(uint64_t seed, bool verbs) {
  FaultTrial trial = draw_faults(kDrawnKinds * seed, verbs);
  std::mt19937_64 random(seed);
  trial.kind = FaultKind::paused;
  trial.lost = trial.reordered = trial.delay_us = 0;
  for (uint64_t i = 1 + random() % 3; i > 0; --i) {
    const auto rank = static_cast<uint32_t>(random() % FarJob::kRanks);
    // A job begins and loads in some tenths of a second, and then goes on until this is over.
    const auto begin = static_cast<uint32_t>(random() % 200'000);
    const auto ms = static_cast<uint32_t>(kLongestPauseMs / 2 + random() % (kLongestPauseMs / 2));
    trial.pauses.push_back({rank, begin, ms});
  }
  return trial;
}

std::string text(const FaultTrial& trial) {
  std::string sizes;
  for (const uint64_t bytes : trial.sizes) sizes += fmt::format(" {}", bytes);
  if (trial.kind == FaultKind::paused) {
    std::string pauses;
    for (const Pause& pause : trial.pauses) {
      pauses += fmt::format("; rank {} at {} us for {} ms", pause.rank, pause.begin_us, pause.ms);
    }
    return fmt::format("paused{}: {}, {} calls of{} bytes{}", trial.verbs ? " over verbs" : "",
                       trial.program, trial.times, sizes, pauses);
  }
  if (trial.verbs) {
    return fmt::format(
        "{} over verbs: {}, {} calls of{} bytes, of 1000 orders {} sent again after "
        "{} us; rank {}; moment {}{}",
        kKinds[static_cast<size_t>(trial.kind)], trial.program, trial.times, sizes, trial.lost,
        trial.delay_us, trial.victim, trial.moment, trial.silent ? "; devices say nothing" : "");
  }
  return fmt::format(
      "{}: {}, {} calls of{} bytes, {} us late, of 1000 packets {} lost and {} reordered{}",
      kKinds[static_cast<size_t>(trial.kind)], trial.program, trial.times, sizes, trial.delay_us,
      trial.lost, trial.reordered,
      trial.kind == FaultKind::killed
          ? fmt::format("; rank {} dies after {}", trial.victim, trial.moment)
      : trial.kind == FaultKind::cut ? fmt::format("; cut after {}", trial.moment)
                                     : "");
}

FaultOutcome try_faults(const FaultTrial& trial) {
  FaultOutcome outcome;
  const size_t before = open_descriptors();
  SharedValue over;
  if (!over.mapped()) std::abort();
  const std::vector<std::string> said = run_trial(trial, over, outcome.left_out);
  if (!outcome.left_out.empty()) return outcome;
  outcome.right = true;
  outcome.pauses = static_cast<uint32_t>(over.at());
  for (uint32_t rank = 0; rank < said.size(); ++rank) judge(trial, rank, said[rank], outcome);
  const uint64_t left = open_descriptors() - before + children();
  outcome.leaked += left;
  if (left > 0) outcome.wrong += fmt::format("{} descriptors or processes are left\n", left);
  return outcome;
}

}  // namespace mscclc::testing
