// Ranks as processes of this machine, forked by this one.
//
//   run_job({.ranks = 4, .failed = 3}, timeout, [&](uint32_t rank, std::unique_ptr<Bootstrap> meet,
//           Diagnostics& problems) { ... return exit_code; }, problems);
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "ir/diagnostics/diagnostic.h"
#include "runtime/api/bootstrap.h"

namespace mscclc {

struct RankProcesses {
  uint32_t ranks;
  int failed;  ///< the exit code of a rank that a signal has ended, or that could not begin
  /// The first rank that fails ends all others: for ranks that wait for one another in ways that a
  /// communicator does not know, such as in memory that they share. Those are not reported.
  bool end_together = false;
  /// Once a rank has failed, those that still run this long after the last that has ended are
  /// killed, and reported: they are stopped, or hang. The same for a stopped one if none has
  /// failed.
  std::chrono::milliseconds patience{10'000};
  /// The exit code where a rank could not write its standard output; goes before all others.
  int unwritten = 2;
};

/// Forks the processes; each gets the text that `make_id` makes in this process once they are
/// there, and returns fn(rank, id) as its exit code. Their standard error comes out as
/// they end, in rank order, without repetitions (distinct_texts.h). Returns the greatest exit code;
/// one that is ended by a signal is reported and counts as `failed`. REQUIRES: no other thread runs
/// here.
int run_processes(const RankProcesses& how, const std::function<std::string()>& make_id,
                  const std::function<int(uint32_t rank, const std::string& id)>& fn);

/// What a rank of a job does; nullptr: it could not join, which `diagnostics` says.
using JobRank = std::function<int(uint32_t rank, std::unique_ptr<Bootstrap> bootstrap,
                                  Diagnostics& diagnostics)>;

/// HostOptions::timeout and silence.
struct JobTimes {
  std::chrono::milliseconds timeout, silence;
};

/// The same for ranks that have met: this process hosts their job. Errors of the host are in
/// `diagnostics`.
[[nodiscard]] int run_job(const RankProcesses& how, const JobTimes& times, const JobRank& fn,
                          Diagnostics& diagnostics);

}  // namespace mscclc
