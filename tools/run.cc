// mscclc run: runs a program or plan on the host machine for some sizes, types and reductions, and
// prints the table of nccl-tests.
#include "executor/host/run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <memory>

#include "executor/host/schedule.h"
#include "tools/command_line.h"
#include "tools/files.h"
#include "tools/input.h"
#include "tools/result_table.h"
#include "tools/sizes.h"
#include "tools/summary.h"

namespace mscclc {
namespace {

constexpr ReduceOp kReductions[] = {ReduceOp::sum, ReduceOp::min, ReduceOp::max, ReduceOp::prod,
                                    ReduceOp::avg};

struct RunOptions {
  InputOptions input;
  std::string bytes = "1M", accumulate;
  std::vector<std::string> dtypes = {"f32"}, ops = {"sum"};
  bool in_place = false, adversarial = false;
  uint32_t iterations = 3;
  std::optional<uint64_t> seed;
  std::string schedule;  ///< a file

  /// Adversarial runs are left to chance unless a seed is given.
  uint64_t schedule_seed() const { return seed.value_or(adversarial ? 1 : 0); }
  /// Blocks of two lanes and of three fail in different places.
  std::optional<Adversary> adversary() const {
    if (!adversarial) return std::nullopt;
    return Adversary{.lanes = 2 + static_cast<uint32_t>(schedule_seed() % 2)};
  }
};

// What to run: every combination of these.
struct Work {
  std::vector<uint64_t> sizes;
  std::vector<Dtype> dtypes;
  std::vector<ReduceOp> ops;
  std::optional<Dtype> accumulate;
};

// What has come of it so far.
struct Totals {
  uint64_t wrong = 0;
  double bandwidth = 0;
  size_t rows = 0;
  int code = kFine;
};

std::string unknown(std::string_view what, const std::string& name,
                    const std::vector<std::string_view>& known) {
  const std::string near = nearest(name, known);
  if (!near.empty()) return fmt::format("unknown {} '{}'; did you mean '{}'?", what, name, near);
  return fmt::format("unknown {} '{}'; expected one of {}", what, name, fmt::join(known, ", "));
}

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

std::string parse_dtypes(const std::vector<std::string>& names, std::vector<Dtype>& dtypes) {
  for (const std::string& name : names) {
    if (name == "all") {
      for (const DtypeInfo& d : dtype_table()) dtypes.push_back(d.dtype);
    } else if (const auto dtype = find_dtype(name)) {
      dtypes.push_back(*dtype);
    } else {
      return unknown("data type", name, dtype_names());
    }
  }
  return "";
}

std::string parse_ops(const std::vector<std::string>& names, std::vector<ReduceOp>& ops) {
  for (const std::string& text : names) {
    const auto op = find_reduce_op(text);
    if (text == "all") {
      ops.insert(ops.end(), std::begin(kReductions), std::end(kReductions));
    } else if (op && *op != ReduceOp::call) {
      ops.push_back(*op);
    } else {
      return unknown("reduction", text, op_names());
    }
  }
  return "";
}

std::string parse_work(const RunOptions& options, Work& work) {
  std::string error;
  const auto sizes = parse_sizes(options.bytes, error);
  if (!sizes) return "--bytes: " + error;
  work.sizes = *sizes;
  if (error = parse_dtypes(options.dtypes, work.dtypes); !error.empty()) return error;
  if (error = parse_ops(options.ops, work.ops); !error.empty()) return error;
  if (options.accumulate.empty()) return "";
  work.accumulate = find_dtype(options.accumulate);
  return work.accumulate ? "" : unknown("data type", options.accumulate, dtype_names());
}

// What the run would need against what the machine has, before it is killed for it.
std::string check_memory(const Program& program, const Work& work) {
  const auto pages = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES));
  const double memory = static_cast<double>(pages) * static_cast<double>(sysconf(_SC_PAGESIZE));
  const uint64_t largest = *std::max_element(work.sizes.begin(), work.sizes.end());
  const double needed = memory_needed(program, largest);
  if (needed <= memory) return "";
  constexpr double kGiB = double{1 << 30};
  return fmt::format("a message of {} bytes needs {:.0f} GiB on {} ranks; this machine has {:.0f}",
                     largest, needed / kGiB, program.contract.ranks, memory / kGiB);
}

std::string check_placement(const RunOptions& options, const Contract& contract) {
  if (!options.in_place) return "";
  if (contract.in_place != InPlace::no && contract.can_alias()) return "";
  return "--in-place: the program promises nothing where input and output coincide";
}

std::string schedule_text(const RunOptions& options) {
  if (!options.schedule.empty()) return fmt::format("schedule '{}'", options.schedule);
  const std::string text = fmt::format("schedule seed {}", options.schedule_seed());
  const auto adversary = options.adversary();
  return adversary ? fmt::format("{}, adversarial, {} lanes", text, adversary->lanes) : text;
}

void print_heading(const RunOptions& options, const Program& program, bool in_place,
                   uint32_t calls) {
  const std::string title = program.name.empty() ? options.input.file : program.name;
  put(fmt::format("# mscclc run: {}, {} over {} ranks, {} call{}, {}\n", title,
                  name(program.contract.kind), program.contract.ranks, calls,
                  calls == 1 ? "" : "s each", schedule_text(options)));
  put(fmt::format(
      "# times are of this machine simulating all ranks: they compare programs here, and say\n"
      "# nothing about a GPU\n#\n{}",
      table_header(in_place)));
}

bool has_root(CollectiveKind kind) {
  return kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce ||
         kind == CollectiveKind::gather || kind == CollectiveKind::scatter;
}

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

// One row. Returns false if there is no point in going on.
bool run_one(HostRunner& runner, Input& input, const RunSpec& spec, Totals& totals) {
  const RunResult result = runner.run(spec, input.diagnostics);
  const Contract& contract = input.program.contract;
  if (result.status == RunStatus::right || result.status == RunStatus::wrong) {
    const ResultRow row = row_of(contract, spec, result);
    const double factor = bus_factor(contract.kind, contract.ranks);
    put(table_row(row, factor));
    totals.bandwidth += algorithm_bandwidth(row) * factor;
    totals.wrong += row.wrong;
    ++totals.rows;
  }
  std::fflush(stdout);
  input.report();
  if (result.status == RunStatus::refused) totals.code = std::max<int>(totals.code, kWrongProgram);
  if (result.status == RunStatus::wrong || result.status == RunStatus::hung) {
    totals.code = kWrongResult;
  }
  return result.status != RunStatus::hung;
}

Totals run_all(const RunOptions& options, const Work& work, Input& input,
               const std::optional<bool>& in_place) {
  HostRunner runner(input.program);
  Totals totals;
  const size_t ops = input.program.contract.reduces() ? work.ops.size() : 1;
  for (const Dtype dtype : work.dtypes) {
    for (size_t i = 0; i < ops; ++i) {
      for (const uint64_t bytes : work.sizes) {
        const RunSpec spec{.bytes = bytes,
                           .dtype = dtype,
                           .op = work.ops[i],
                           .accumulate = work.accumulate,
                           .in_place = in_place,
                           .iterations = options.iterations,
                           .schedule_seed = options.schedule_seed(),
                           .adversary = options.adversary()};
        if (!run_one(runner, input, spec, totals)) return totals;
      }
    }
  }
  return totals;
}

/// Brings the input to a program that can be run. Returns kFine, or the exit code.
int load(Input& input) {
  if (const int code = input.load({}); code != kFine) return code;
  Program& program = input.program;
  // IR text comes as it was written; what was printed before the passes ran has them ahead.
  if (!program.split && !run_passes(program, {}, input.diagnostics)) {
    input.report();
    return kWrongProgram;
  }
  return kFine;
}

/// Replays a schedule.
int run_schedule(const RunOptions& options) {
  Input input(options.input);
  if (const int code = load(input); code != kFine) return code;
  std::string error;
  const auto text = read_file(options.schedule, error);
  if (!text) return Input::usage(error);
  const auto schedule = read_schedule(*text, options.schedule, input.program, input.diagnostics);
  input.report();
  if (!schedule) return kWrongProgram;
  const RunSpec& spec = schedule->spec;
  error = check_memory(input.program, {{spec.bytes}, {}, {}, {}});
  if (!error.empty()) return Input::usage(error);
  print_heading(options, input.program, *spec.in_place, spec.iterations);
  HostRunner runner(input.program);
  Totals totals;
  run_one(runner, input, spec, totals);
  put(table_footer(totals.wrong, totals.bandwidth, totals.rows));
  return totals.code;
}

int run_run(const RunOptions& options) {
  if (!options.schedule.empty()) return run_schedule(options);
  Work work;
  if (const std::string error = parse_work(options, work); !error.empty()) {
    return Input::usage(error);
  }
  Input input(options.input);
  if (const int code = load(input); code != kFine) return code;
  const Program& program = input.program;
  for (const std::string& error :
       {check_placement(options, program.contract), check_memory(program, work)}) {
    if (!error.empty()) return Input::usage(error);
  }
  const bool in_place = options.in_place || program.contract.in_place == InPlace::yes;
  print_heading(options, program, in_place, options.iterations);
  const Totals totals = run_all(options, work, input, in_place);
  put(table_footer(totals.wrong, totals.bandwidth, totals.rows));
  return totals.code;
}

std::vector<std::string> strings(const std::vector<std::string_view>& names) {
  return {names.begin(), names.end()};
}

std::vector<std::string> with_all(const std::vector<std::string_view>& names) {
  std::vector<std::string> list = strings(names);
  list.emplace_back("all");
  return list;
}

void add_run_options(CommandLine& line, CLI::App& app, RunOptions& options) {
  line.takes_text(app.add_option("--bytes", options.bytes,
                                 "message sizes, the larger of input and output: 64K, 1K:1M "
                                 "(doubling), 1K:1M:4 (times 4), 1K:9K:+2K (plus 2K), or a list "
                                 "of these separated by commas; K, M, G are powers of 1024 "
                                 "(default: 1M)")
                      ->type_name("SIZES"));
  line.takes(app.add_option("--dtype", options.dtypes,
                            "data types, separated by commas, or all (default: f32): " +
                                fmt::format("{}", fmt::join(dtype_names(), ", ")))
                 ->type_name("LIST")
                 ->delimiter(',')
                 ->allow_extra_args(false),
             with_all(dtype_names()));
  line.takes(app.add_option("--op", options.ops,
                            "reductions, separated by commas, or all (default: sum): " +
                                fmt::format("{}", fmt::join(op_names(), ", ")))
                 ->type_name("LIST")
                 ->delimiter(',')
                 ->allow_extra_args(false),
             with_all(op_names()));
  line.takes(app.add_option("--accumulate", options.accumulate,
                            "the type to add up in (default: f32 for floats of 32 bits and less, "
                            "else the data type)")
                 ->type_name("TYPE"),
             strings(dtype_names()));
}

void add_schedule_options(CommandLine& line, CLI::App& app, RunOptions& options) {
  line.takes_text(app.add_option("--schedule-seed", options.seed,
                                 "which block goes on next is drawn from this number; 0: each "
                                 "runs until it must wait (default: 0)")
                      ->type_name("S"));
  app.add_flag("--adversarial", options.adversarial,
               "cut blocks into lanes that meet only where the plan makes them, and do accesses "
               "as late as the memory model allows, both at random (default seed: 1)");
  CLI::Option* schedule =
      app.add_option("--schedule", options.schedule,
                     "replay a schedule as 'mscclc verify --witness' writes them; it says what "
                     "to run")
          ->type_name("FILE");
  for (const char* name : {"--bytes", "--dtype", "--op", "--accumulate", "--in-place", "--iters",
                           "--schedule-seed", "--adversarial"}) {
    schedule->excludes(app.get_option(name));
  }
}

}  // namespace

void add_run(CommandLine& line) {
  Command& command =
      line.add("run", "run a program or plan on the host machine and check the result",
               "  mscclc run plans/allreduce_2shot.mscl --bytes 1K:1M:4\n"
               "  mscclc run allreduce.json --dtype f16,bf16 --op sum,max --in-place\n"
               "  mscclc run ring.mscl -D R=3 --bytes 0,1,7,1000 --dtype all --op all\n"
               "  mscclc run ring.mscl --iters 10 --schedule-seed 7\n"
               "  mscclc run ring.json --schedule witness.json\n");
  auto options = std::make_shared<RunOptions>();
  CLI::App& app = *command.app;
  add_input_options(line, app, options->input);
  add_run_options(line, app, *options);
  app.add_flag("--in-place", options->in_place, "let input and output coincide");
  line.takes_text(app.add_option("--iters", options->iterations,
                                 "calls in succession, each checked; the time is their mean "
                                 "(default: 3)")
                      ->type_name("N")
                      ->check(CLI::Range(1u, 1000000u)));
  add_schedule_options(line, app, *options);
  command.run = [options] { return run_run(*options); };
}

}  // namespace mscclc
