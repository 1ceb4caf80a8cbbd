// What `mscclc run` is asked to do, on whichever device, and the table of what came of it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "executor/simulator/run.h"
#include "ir/support/result.h"
#include "tools/io/input.h"
#include "tools/io/result_table.h"
#include "tools/timeline/files.h"

namespace mscclc {

inline constexpr ReduceOp kReductions[] = {ReduceOp::sum, ReduceOp::min, ReduceOp::max,
                                           ReduceOp::prod, ReduceOp::avg};

struct RunOptions {
  std::vector<std::string> files;  ///< several: run together by a schedule
  InputOptions input;              ///< its file: the first
  std::string target;              ///< name or file; empty: no limits
  std::string bytes = "1M", accumulate;
  std::string rows;  ///< of a message of rows, instead of its bytes; empty: not given
  std::string first_bytes, last_bytes, factor;  ///< as nccl-tests says it; empty: not given
  std::vector<std::string> dtypes = {"f32"}, ops = {"sum"};
  bool in_place = false, adversarial = false;
  uint32_t iterations = 3;
  std::optional<uint64_t> seed;
  std::string schedule;  ///< a file
  std::string device = "host";
  bool threads = false;                    ///< ranks are threads of one process
  std::optional<uint32_t> ranks_per_node;  ///< the machine is cut into nodes; nullopt: it is one
  std::string lane;                        ///< sockets or verbs; "": as MSCCLC_LANE says
  timeline::TimelineOptions timeline;
  std::string machine;  ///< of predicted timelines; "": one that fits

  /// Adversarial runs are left to chance unless a seed is given.
  uint64_t schedule_seed() const { return seed.value_or(adversarial ? 1 : 0); }
  /// Blocks of two strands and of three fail in different places.
  std::optional<Adversary> adversary() const {
    if (!adversarial) return std::nullopt;
    return Adversary{.strands = 2 + static_cast<uint32_t>(schedule_seed() % 2)};
  }
};

// What to run: every combination of these.
struct Work {
  std::vector<uint64_t> sizes;  ///< in bytes, or rows if these were given
  std::vector<Dtype> dtypes;
  std::vector<ReduceOp> ops;
  std::optional<Dtype> accumulate;
  bool all_dtypes = false;  ///< it says "all"
};

// What has come of it so far.
struct Totals {
  uint64_t wrong = 0;
  double bandwidth = 0;
  size_t rows = 0;
  int code = kFine;
};

std::vector<std::string_view> dtype_names();
std::vector<std::string_view> op_names();

/// Parses --bytes or --rows, --dtype, --op and --accumulate.
Result<Work> parse_work(const RunOptions& options);
/// The runs of `work` in the order of the table's rows.
std::vector<RunSpec> specs_of(const RunOptions& options, const Work& work,
                              const Contract& contract);
/// What a run would need against what the machine has, before it is killed for it: where that is
/// too little.
std::optional<Error> lack_of_memory(const Program& program, std::span<const RunSpec> specs);
/// The same of several plans in one run, with a size each.
std::optional<Error> lack_of_memory(std::span<const PlacedPlan> plans,
                                    const std::vector<uint64_t>& sizes);
/// Loads the input and brings it to a program that can be run. Returns kFine, or prints why not and
/// returns the exit code.
int load_to_run(const RunOptions& options, Input& input);
/// Why the program cannot be run in place, if that was asked for.
std::optional<Error> why_not_in_place(const RunOptions& options, const Contract& contract);

/// Which size holds no row of a program of rows, if one does: nothing would be tried, and nothing
/// found wrong. A size of 0 is meant so. With --rows: why there are no messages of so many.
std::optional<Error> why_no_rows(const RunOptions& options, const Program& program,
                                 std::span<const RunSpec> specs);

/// "64 KiB of f32, sum", for Progress.
std::string spec_text(const RunSpec& spec);

/// Prints the lines above the table. `how` says on what it is run, `note` what the times mean.
void print_heading(const RunOptions& options, const Program& program, bool in_place, uint32_t calls,
                   const std::string& how, const std::string& note);
/// Sets the exit code that a result asks for.
void count_result(const RunResult& result, Totals& totals);
/// Prints a result's row, if it has one.
void print_result(const Contract& contract, const RunSpec& spec, const RunResult& result,
                  Totals& totals);
void print_totals(const Totals& totals);

}  // namespace mscclc
