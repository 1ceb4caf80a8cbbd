#include "tools/run/run_work.h"

#include <fmt/format.h>

#include <algorithm>

#include "executor/cost/explanation.h"
#include "executor/lower.h"
#include "ir/diagnostics/printable.h"
#include "ir/verify/row_faults.h"
#include "plans/format/target.h"
#include "runtime/support/machine.h"
#include "tools/io/files.h"
#include "tools/io/sizes.h"
#include "tools/report/summary.h"

namespace mscclc {
namespace {

std::string unknown(std::string_view what, const std::string& name,
                    const std::vector<std::string_view>& known) {
  const std::string near = nearest(name, known);
  if (!near.empty()) return fmt::format("unknown {} '{}'; did you mean '{}'?", what, name, near);
  return fmt::format("unknown {} '{}'; expected one of {}", what, name, fmt::join(known, ", "));
}

}  // namespace

std::vector<std::string_view> dtype_names() {
  std::vector<std::string_view> names;
  for (const DtypeInfo& d : dtype_table()) names.push_back(d.name);
  return names;
}

std::vector<std::string_view> op_names() {
  std::vector<std::string_view> names;
  for (const ReduceOp op : kReductions) names.push_back(name(op));
  return names;
}

namespace {

Result<std::vector<Dtype>> parse_dtypes(const std::vector<std::string>& names) {
  std::vector<Dtype> dtypes;
  for (const std::string& name : names) {
    if (name == "all") {
      for (const DtypeInfo& d : dtype_table()) dtypes.push_back(d.dtype);
    } else if (const auto dtype = find_dtype(name)) {
      dtypes.push_back(*dtype);
    } else {
      return Error{unknown("data type", name, dtype_names())};
    }
  }
  return dtypes;
}

Result<std::vector<ReduceOp>> parse_ops(const std::vector<std::string>& names) {
  std::vector<ReduceOp> ops;
  for (const std::string& text : names) {
    const auto op = find_reduce_op(text);
    if (text == "all") {
      ops.insert(ops.end(), std::begin(kReductions), std::end(kReductions));
    } else if (op && *op != ReduceOp::call) {
      ops.push_back(*op);
    } else {
      return Error{unknown("reduction", text, op_names())};
    }
  }
  return ops;
}

}  // namespace

/// -b, -e and -f as nccl-tests has them; or --rows, or --bytes.
std::string sizes_text(const RunOptions& options) {
  if (!options.rows.empty()) return options.rows;
  if (options.first_bytes.empty()) return options.bytes;
  if (options.last_bytes.empty()) return options.first_bytes;
  const std::string factor = options.factor.empty() ? "2" : options.factor;
  return options.first_bytes + ":" + options.last_bytes + ":" + factor;
}

/// So that no number of bytes overflows, whatever the columns and the type.
constexpr uint64_t kMostRows = uint64_t{1} << 36;

Result<Work> parse_work(const RunOptions& options) {
  const auto sizes = parse_sizes(sizes_text(options));
  if (!sizes) {
    return Error{(!options.rows.empty()         ? "--rows: "
                  : options.first_bytes.empty() ? "--bytes: "
                                                : "-b, -e, -f: ") +
                 sizes.error().text()};
  }
  const uint64_t most = *std::ranges::max_element(*sizes);
  if (!options.rows.empty() && most > kMostRows) {
    return Error{fmt::format("--rows: {} rows are no message", most)};
  }
  const auto dtypes = parse_dtypes(options.dtypes);
  if (!dtypes) return dtypes.error();
  const auto ops = parse_ops(options.ops);
  if (!ops) return ops.error();
  const bool all = std::ranges::find(options.dtypes, "all") != options.dtypes.end();
  Work work{*sizes, *dtypes, *ops, {}, all};
  if (options.accumulate.empty()) return work;
  work.accumulate = find_dtype(options.accumulate);
  if (work.accumulate) return work;
  return Error{unknown("data type", options.accumulate, dtype_names())};
}

std::vector<RunSpec> specs_of(const RunOptions& options, const Work& work,
                              const Contract& contract) {
  std::optional<bool> in_place;
  in_place = options.in_place || contract.in_place == InPlace::yes;
  std::vector<RunSpec> specs;
  const size_t ops = contract.reduces() ? work.ops.size() : 1;
  for (const Dtype dtype : work.dtypes) {
    // Of "all" those that rows have; of those that are named why_no_rows() says so.
    if (contract.columns != 0 && work.all_dtypes && !rows::can_be_t(dtype)) continue;
    for (size_t i = 0; i < ops; ++i) {
      for (const uint64_t size : work.sizes) {
        const uint64_t row = uint64_t{contract.columns} * info(dtype).bytes;
        specs.push_back({.bytes = options.rows.empty() ? size : size * row,
                         .dtype = dtype,
                         .op = work.ops[i],
                         .accumulate = work.accumulate,
                         .in_place = in_place,
                         .iterations = options.iterations,
                         .schedule_seed = options.schedule_seed(),
                         .adversary = options.adversary()});
      }
    }
  }
  return specs;
}

namespace {

double machine_memory() { return static_cast<double>(memory_of_machine()); }

constexpr double kGiB = double{1 << 30};

}  // namespace

// What the run would need against what the machine has, before it is killed for it.
std::optional<Error> lack_of_memory(const Program& program, std::span<const RunSpec> specs) {
  const uint64_t largest = std::ranges::max_element(specs, {}, &RunSpec::bytes)->bytes;
  const double needed = memory_needed(program, largest);
  if (needed <= machine_memory()) return std::nullopt;
  return Error{
      fmt::format("a message of {} bytes needs {:.0f} GiB on {} ranks; this machine has {:.0f}",
                  largest, needed / kGiB, program.contract.ranks, machine_memory() / kGiB)};
}

std::optional<Error> lack_of_memory(std::span<const PlacedPlan> plans,
                                    const std::vector<uint64_t>& sizes) {
  double needed = 0;
  for (size_t p = 0; p < plans.size(); ++p) needed += memory_needed(*plans[p].program, sizes[p]);
  if (needed <= machine_memory()) return std::nullopt;
  return Error{fmt::format("messages of {} bytes need {:.0f} GiB together; this machine has {:.0f}",
                           fmt::join(sizes, ", "), needed / kGiB, machine_memory() / kGiB)};
}

int load_to_run(const RunOptions& options, Input& input) {
  PassOptions passes;
  if (!options.target.empty()) {
    const auto target = find_target(options.target, input.diagnostics);
    input.report();
    if (!target) return kUsage;
    passes.limits = target->op_limits();
  }
  if (const int code = input.load(passes); code != kFine) return code;
  Program& program = input.program;
  // IR text comes as it was written; what was printed before the passes ran has them ahead.
  if (!program.split && !run_passes(program, passes, input.diagnostics)) {
    input.report();
    return kWrongProgram;
  }
  const auto fault = columns_fault(program);
  return fault ? Input::usage(fault->message) : kFine;
}

std::optional<Error> why_not_in_place(const RunOptions& options, const Contract& contract) {
  if (!options.in_place) return std::nullopt;
  if (contract.in_place != InPlace::no && contract.can_alias()) return std::nullopt;
  return Error{"--in-place: the program promises nothing where input and output coincide"};
}

std::optional<Error> why_no_rows(const RunOptions& options, const Program& program,
                                 std::span<const RunSpec> specs) {
  const Contract& c = program.contract;
  if (c.columns == 0) {
    return options.rows.empty()
               ? std::nullopt
               : std::optional(Error{"--rows: it is for collectives of rows, and this is none"});
  }
  for (const RunSpec& spec : specs) {
    if (!rows::can_be_t(spec.dtype)) {
      return Error{fmt::format("--dtype {}: row functions are computed of f32, f16 and bf16",
                               info(spec.dtype).name)};
    }
    const uint32_t row = unit_of_part(program, spec.dtype);
    const uint64_t part = Chunking::part_for_message(c, spec.bytes, row);
    const uint64_t whole = Chunking(c, part, program.granule(spec.dtype)).message_bytes();
    if (!options.rows.empty() && whole != spec.bytes) {
      return Error{
          fmt::format("--rows: {} rows are not divided among {} ranks; a message has a "
                      "multiple of {}",
                      spec.bytes / row, c.ranks,
                      Chunking(c, row, program.granule(spec.dtype)).message_bytes() / row)};
    }
    if (spec.bytes == 0 || part != 0) continue;
    return Error{fmt::format("a message of {} bytes holds no row of {} {}: the least has {}",
                             spec.bytes, c.columns, info(spec.dtype).name,
                             Chunking(c, row, program.granule(spec.dtype)).message_bytes())};
  }
  return std::nullopt;
}

std::string spec_text(const RunSpec& spec) {
  return fmt::format("{} of {}, {}", cost::size_text(spec.bytes), info(spec.dtype).name,
                     name(spec.op));
}

void print_heading(const RunOptions& options, const Program& program, bool in_place, uint32_t calls,
                   const std::string& how, const std::string& note) {
  const std::string title =
      printable_line(program.name.empty() ? options.input.file : program.name);
  put(fmt::format("# mscclc run: {}, {} over {} ranks, {} call{}, {}\n{}#\n{}", title,
                  name(program.contract.kind), program.contract.ranks, calls,
                  calls == 1 ? "" : "s each", how, note, table_header(in_place)));
}

namespace {

ResultRow row_of(const Contract& contract, const RunSpec& spec, const RunResult& result) {
  ResultRow row;
  row.bytes = result.bytes;
  const uint32_t element = info(spec.dtype).bytes;
  row.count = Chunking::part_for_message(contract, result.bytes, element) / element;
  row.dtype = info(spec.dtype).name;
  row.op = contract.reduces() ? name(spec.op) : "none";
  row.root = has_root(contract.kind) ? static_cast<int64_t>(contract.root) : -1;
  row.microseconds = result.seconds * 1e6;
  row.wrong = result.wrong;
  return row;
}

}  // namespace

void print_result(const Contract& contract, const RunSpec& spec, const RunResult& result,
                  Totals& totals) {
  if (result.status == RunStatus::right || result.status == RunStatus::wrong) {
    const ResultRow row = row_of(contract, spec, result);
    const double factor = bus_factor(contract.kind, contract.ranks);
    put(table_row(row, factor));
    totals.bandwidth += algorithm_bandwidth(row) * factor;
    totals.wrong += row.wrong;
    ++totals.rows;
  }
  std::fflush(stdout);
}

void count_result(const RunResult& result, Totals& totals) {
  // The call is refused: another size, type or reduction could run.
  if (result.status == RunStatus::refused) totals.code = std::max<int>(totals.code, kUsage);
  if (result.status == RunStatus::wrong || result.status == RunStatus::hung) {
    totals.code = kWrongResult;
  }
}

void print_totals(const Totals& totals) {
  put(table_footer(totals.wrong, totals.bandwidth, totals.rows));
}

}  // namespace mscclc
