// A pass changes a program or reports why it cannot.
#pragma once

#include <chrono>
#include <ctime>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/diagnostics/diagnostic.h"
#include "ir/ops/op_limits.h"
#include "ir/program/program.h"

namespace mscclc {

/// One run of a pass: what it cost and what it did. For --time-passes and --stats.
struct PassRecord {
  std::string_view pass;
  double wall_seconds = 0, cpu_seconds = 0;
  uint64_t ops_before = 0, ops_after = 0;  ///< of all ranks
  /// What the pass has counted, in the order of first mention: "syncs inserted" 12.
  std::vector<std::pair<std::string, uint64_t>> counts;
};

/// Measures what one run costs, from its own construction on.
class RunClock {
 public:
  /// Fills in the wall time, and the CPU time of all threads of the process.
  void stop(PassRecord& record) const;

 private:
  std::chrono::steady_clock::time_point wall_ = std::chrono::steady_clock::now();
  std::clock_t cpu_ = std::clock();
};

/// What a pass gets besides the program.
struct PassContext {
  Diagnostics& diagnostics;
  OpLimits limits = {};            ///< of the target that the program is compiled for
  uint32_t max_thread_blocks = 0;  ///< of a rank, instances and all; 0: any number
  PassRecord* record = nullptr;    ///< where to count; may be null
  uint32_t threads = 0;            ///< see thread_count (ir/program/rank_parts.h)

  /// Adds to a count of the record. Counts of zero are not mentioned.
  void count(std::string_view what, uint64_t by = 1);
  /// The same, except for where it reports and counts.
  PassContext with(Diagnostics& reports, PassRecord* counts) const {
    return {reports, limits, max_thread_blocks, counts, threads};
  }
};

struct PassInfo {
  std::string_view name;     ///< what --passes and --print-after take
  std::string_view summary;  ///< one line for `mscclc passes`
  /// Changes the program in place; returns false after reporting an error.
  bool (*run)(Program& program, PassContext& context);
};

}  // namespace mscclc
