// One rank of a benchmark: loads the contenders, checks and times them, prints tables (rank 0).
#pragma once

#include <string>
#include <vector>

#include "runtime/api/bootstrap.h"
#include "tools/bench/measure/timing.h"
#include "tools/bench/plans/plan_source.h"
#include "tools/bench/ranks/watch.h"
#include "tools/bench/results/result.h"
#include "tools/bench/support/options.h"

namespace mscclc::bench {

/// What all ranks of a run share.
struct BenchRun {
  const Options& options;
  const PlanSource& plans;
  const Record& before;  ///< what was measured by others, or before
  SpinBarrier& barrier;  ///< in shared memory ...
  Watch& watch;          ///< ... like this one
  int record_file = -1;  ///< lines of record.h are appended (by rank 0)
};

/// Runs a rank that has met the others; the exit code: 0, or 3 if the run broke off.
int run_session(const BenchRun& run, std::unique_ptr<Bootstrap> bootstrap);

}  // namespace mscclc::bench
