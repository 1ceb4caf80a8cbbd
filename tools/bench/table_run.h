// Checks and times all contenders of one table, size by size, on one rank.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "runtime/api/communicator.h"
#include "tools/bench/measure/checker.h"
#include "tools/bench/measure/clock_rows.h"
#include "tools/bench/measure/run_log.h"
#include "tools/bench/measure/timing.h"
#include "tools/bench/session.h"

namespace mscclc::bench {

/// What a rank measures with, from the beginning of a session to its end.
struct Bench {
  Bench(const BenchRun& begun, Communicator& ranks, const RunLog& lines)
      : run(begun), communicator(ranks), log(lines) {}

  const BenchRun& run;
  Communicator& communicator;
  const RunLog& log;
  cudaStream_t stream = nullptr;
  std::unique_ptr<Checker> checker;
  std::unique_ptr<ClockRows> clocks;  ///< if they are asked for
  std::set<std::string> called;       ///< contenders that have run once
  bool shown_first_plan = false;      ///< how long its first call took

  /// What this run is at, for those that watch it.
  void at(std::string_view what) const;
  /// After a hang nothing more can be launched: says so, and which it was.
  bool broke_off() const;
  /// Says why the run ends. Returns false.
  bool end(Diagnostics& diagnostics) const;
};

/// A table's measurements in the making.
struct Table {
  CollectiveKind kind;
  Contract contract;
  Dtype dtype;
  ReduceOp op;
  bool graph;
  std::vector<Contender*> contenders;
  Result blank;  ///< what all its results have in common
};

class TableRun {
 public:
  TableRun(Bench& bench, const Table& table)
      : bench_(bench),
        options_(bench.run.options),
        arounds_(count_arounds(options_)),
        table_(table) {}

  /// Adds to `rows` what each contender takes for a workload. False: the run must end.
  bool measure(const Workload& workload, std::vector<Result>& rows);

 private:
  /// A contender that is timed, and its times.
  struct Taking {
    Contender* contender = nullptr;
    std::unique_ptr<Timed> timed;
    std::vector<double> times[kArounds];  ///< of each repeat, by Around
    std::vector<double> units;
    bool good = true;  ///< on this rank; else `trouble` says why not
    Diagnostics trouble;
  };

  bool surround(const Workload& workload, std::optional<Surroundings>& surroundings) const;
  bool start_all(const Workload& workload, const std::optional<Surroundings>& surroundings,
                 std::vector<Result>& rows, std::vector<Taking>& taking);
  bool try_out(Contender& contender, const Workload& workload, std::vector<Result>& rows,
               bool& takes_part);
  bool prepare(Contender& contender, const Workload& workload, bool& takes_part);
  void first_call(Contender& contender);
  bool check(Contender& contender, const Workload& workload, const Checker::Launch& launch,
             const std::string& when, std::vector<Result>& rows, bool& right);
  bool stays_in(const Taking& t, const Workload& workload, bool& stays);
  void time_all(const Workload& workload, std::vector<Taking>& taking);
  bool finish(const Workload& workload, Taking& t, std::vector<Result>& rows);
  bool check_repeated(const Workload& workload, Taking& t, std::vector<Result>& rows);
  bool show_clocks(Timed& timed, const Contender& contender, Diagnostics& diagnostics);
  Result& row_of(const Workload& workload, const Contender& contender,
                 std::vector<Result>& rows) const;
  void leave_out(const Contender& contender, const std::string& why, const Workload& at) const;
  void at(const Contender& contender, const Workload& workload) const;

  Bench& bench_;
  const Options& options_;
  const uint32_t arounds_;  ///< ways in which calls are timed
  const Table& table_;
};

}  // namespace mscclc::bench
