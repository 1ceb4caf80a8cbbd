// mscclc explain: what a plan's call takes on a machine, and why.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "executor/cost/choices/explain_choices.h"
#include "executor/cost/explanation.h"
#include "executor/cost/machines.h"
#include "passes/prove/why_not_proved.h"
#include "plans/format/machines/machine.h"
#include "plans/format/plan_json.h"
#include "plans/format/row_table.h"
#include "runtime/support/process/quiet_thread.h"
#include "tools/io/command_line.h"
#include "tools/io/files.h"
#include "tools/io/input.h"
#include "tools/io/library.h"
#include "tools/io/sizes.h"
#include "tools/report/pass_trace.h"
#include "tools/timeline/files.h"
#include "tools/timeline/predicted.h"

namespace mscclc {
namespace {

constexpr const char* kExplainExamples = R"(  mscclc explain plans/allreduce_2shot.mscl -D R=4
  mscclc explain plans/allreduce_push.mscl -D R=4 --bytes 1M:1G:4 --machine 4xH200
  mscclc explain plans/allgather_direct.mscl --ranks 8 --bytes 64M --json
  mscclc explain plan.json --bytes 256K --machine my_machine.json
  mscclc explain allreduce_norm_1shot --ranks 2 --columns 6144 --rows 6 --dtype bf16
  mscclc explain plans/allreduce_2shot.mscl -D R=8 --html timeline.html)";

struct ExplainOptions {
  InputOptions input;
  std::string bytes, dtype = "f32", machine, target;
  uint32_t ranks = 0;            ///< 0: as the program says
  std::optional<uint64_t> rows;  ///< of a collective of rows
  bool json = false, no_choices = false;
  timeline::TimelineOptions timeline;
};

/// "R", or "world" where a program names its ranks so.
std::string rank_parameter(const std::string& file) {
  const auto text = look_into_program(file);
  return text && text->find(" world =") != std::string::npos ? "world" : "R";
}

int refuse(const std::string& why) {
  put_error(fmt::format("mscclc explain: {}\ntry 'mscclc explain --help'\n", why));
  return kUsage;
}

std::string table_head() {
  return fmt::format("{:>14}{:>12}{:>12}{:>10}{:>12}  {}\n", "bytes", "us", "bound", "times",
                     "MB/s", "limit");
}

std::string table_row(const cost::Explanation& e) {
  const double bound = e.bound.ns / 1e3;
  const std::string asked =
      e.asked_bytes ? fmt::format("  ({} were asked for)", *e.asked_bytes) : "";
  if (!e.why_nothing.empty()) return fmt::format("{:>14}  {}{}\n", e.bytes, nothing_text(e), asked);
  return fmt::format("{:>14}{:>12.2f}{:>12.2f}{:>10.2f}{:>12.0f}  {}{}\n", e.bytes, e.us, bound,
                     bound > 0 ? e.us / bound : 0, static_cast<double>(e.bytes) / e.us,
                     cost::kCauseNames[static_cast<size_t>(e.limit())], asked);
}

/// Writes the timeline of a call, which is explained beside it.
int write_timeline(const ExplainOptions& options, const Call& call, Input& input,
                   const Machine& machine, bool proved) {
  const auto predicted = timeline::predict(input.program, call, machine, input.diagnostics);
  input.report();
  if (!predicted) return kWrongProgram;
  const timeline::CallFacts facts{
      input.program, timeline::title_of(input.program, call) + (proved ? "" : ", NOT PROVED")};
  return Input::code_of(timeline::write_timeline(options.timeline, facts,
                                                 {timeline::predicted_trace(*predicted, machine)}));
}

/// Proves the plan while it is predicted, which takes as long.
class ProofBeside {
 public:
  explicit ProofBeside(const Input& input)
      : input_(input), thread_(quiet_thread("mscclc-proof", [this] { prove_it(); })) {}
  ~ProofBeside() {
    if (thread_.joinable()) thread_.join();
  }
  ProofBeside(const ProofBeside&) = delete;
  ProofBeside& operator=(const ProofBeside&) = delete;

  /// Waits for the proof: why_not_proved().
  const std::string& why_not() {
    if (thread_.joinable()) thread_.join();
    if (!why_not_) prove_it();  // the system gave no thread, or no memory beside the prediction
    return *why_not_;
  }

 private:
  void prove_it() { why_not_ = why_not_proved(input_.program, input_.sources); }

  const Input& input_;
  std::optional<std::string> why_not_;
  std::thread thread_;
};

struct ExplainedCalls {
  std::vector<uint64_t> sizes;
  Dtype dtype;
  std::string from_table;  ///< parameters
};

int explain_sizes(const ExplainOptions& options, const ExplainedCalls& calls, Input& input,
                  const Machine& machine, const std::vector<cost::PassLine>& passes) {
  const auto& [sizes, dtype, from_table] = calls;
  const bool table = sizes.size() > 1 && !options.json;
  std::optional<SumOrder> order;  // of the calls whose choice is explained
  if (!table && !options.no_choices) {
    order = order_of_calls("", input.diagnostics);
    input.report();
    if (!order) return kUsage;
  }
  ProofBeside proof(input);
  bool first = true;
  for (const uint64_t bytes : sizes) {
    const Call call = cost::call_of(input.program, bytes, dtype);
    auto explanation = cost::explain(input.program, call, machine, input.diagnostics, bytes);
    input.report();
    if (!explanation) return kWrongProgram;
    explanation->not_proved = proof.why_not();
    explanation->from_table = from_table;
    if (table) {
      if (std::exchange(first, false)) {
        put(not_proved_text(*explanation) + from_table_text(*explanation) + table_head());
      }
      put(table_row(*explanation));
      continue;
    }
    explanation->passes = passes;
    if (order) explain_choices(input.program, call, machine, *order, *explanation);
    put(options.json ? explanation_json(*explanation) : explanation_text(*explanation));
    if (!options.timeline.asked()) continue;
    if (const int code =
            write_timeline(options, call, input, machine, explanation->not_proved->empty());
        code != kFine)
      return code;
  }
  return kFine;
}

/// What -D or FILE gives a parameter.
std::optional<std::string> given(const InputOptions& input, const std::string& parameter) {
  const size_t colon = std::min(input.file.find(':'), input.file.size());
  std::string all = fmt::format(",{},", fmt::join(input.defines, ","));
  if (colon != input.file.size()) all += input.file.substr(colon + 1) + ",";
  const std::string begin = fmt::format(",{}=", parameter);
  const size_t at = all.find(begin);
  if (at == all.npos) return std::nullopt;
  return all.substr(at + begin.size(), all.find(',', at + 1) - at - begin.size());
}

bool is_in_table(const std::string& program) {
  return std::ranges::any_of(builtin_row_table().entries(),
                             [&](const RowEntry& e) { return e.program == program; });
}

/// The entry that picks a program for a call, or for one that is nearly so large, if there is one.
const RowEntry* entry_of(const std::string& program, RowCall call) {
  const RowEntry* found = nullptr;
  for (const RowEntry& e : builtin_row_table().entries()) {
    if (e.program != program || call.ranks < e.min_ranks || call.ranks > e.max_ranks) continue;
    found = &e;
    if (!e.why_not(call)) break;
  }
  return found;
}

/// Gives a program of rows, named, the parameters that the table has for a call of its shape; but
/// not those that its user gives. "B=8,T=768": which they are, in `set`. Returns kFine, or prints
/// why not and returns the exit code.
int set_table_parameters(ExplainOptions& options, uint64_t bytes, Dtype dtype, std::string& set) {
  InputOptions& input = options.input;
  constexpr uint64_t kMostColumns = 1 << 20;  // of any program of rows
  const uint64_t columns = input.columns.value_or(0);
  const std::string name = input.file.substr(0, input.file.find(':'));
  if (columns == 0 || columns > kMostColumns || !is_in_table(name)) return kFine;
  PassOptions no_passes;
  no_passes.none = true;
  Input asked(input);  // of how many ranks it is, without the table
  std::string said;    // what load() says of the program itself, too, comes with the second reading
  asked.report_into(said);
  if (const int code = asked.load(no_passes); code != kFine) {
    put_diagnostics(said, input.diagnostics);
    return code;
  }
  RowCall call{
      .name = "", .ranks = asked.program.contract.ranks, .columns = columns, .dtype = dtype};
  call.rows = options.rows.value_or(bytes / call.row_bytes());
  const RowEntry* const entry = entry_of(name, call);
  if (entry == nullptr) return kFine;
  std::vector<std::string> defines;
  for (const auto& [parameter, value] : entry->defines(call)) {
    if (parameter == "R" || parameter == "N" || given(input, parameter)) continue;
    defines.push_back(fmt::format("{}={}", parameter, value));
  }
  input.defines.insert(input.defines.end(), defines.begin(), defines.end());
  set = fmt::format("{}", fmt::join(defines, ","));
  return kFine;
}

/// --ranks is a parameter of the program.
std::optional<Error> set_ranks(ExplainOptions& options) {
  InputOptions& input = options.input;
  if (options.ranks == 0) return std::nullopt;
  return input.define(rank_parameter(input.file), options.ranks, "--ranks", "ranks");
}

/// Why a call of the program has no rows that are so many, or so wide.
std::optional<Error> why_no_rows(const ExplainOptions& options, const Contract& c) {
  if (c.columns == 0 && options.rows) {
    return Error{"--rows: it is for collectives of rows, and this is none"};
  }
  if (!c.any_columns) return std::nullopt;
  return Error{
      fmt::format("the program takes rows of any multiple of {0} columns; say how many, "
                  "as in --columns {0}",
                  c.columns)};
}

/// Of so many rows, in bytes.
Result<std::vector<uint64_t>> size_of_rows(uint64_t rows, const Program& program, Dtype dtype) {
  constexpr uint64_t kMost = uint64_t{1} << 50;
  const uint64_t row = uint64_t{program.contract.columns} * info(dtype).bytes;
  if (rows == 0 || rows > kMost / row) return Error{fmt::format("{} rows are no message", rows)};
  return std::vector{rows * row};
}

int run_explain(ExplainOptions& options) {
  auto sizes = parse_sizes(options.bytes.empty() ? "1M" : options.bytes);
  if (!sizes) return refuse("--bytes: " + sizes.error().text());
  if (options.timeline.asked() && sizes->size() > 1) {
    return refuse("--trace and --html show one call; --bytes gives several");
  }
  if (const auto could = timeline::could_write_timeline(options.timeline); !could) {
    return Input::usage(could.error());
  }
  const auto dtype = find_dtype(options.dtype);
  if (!dtype) return refuse(fmt::format("unknown data type '{}'", options.dtype));
  if (const auto error = set_ranks(options)) return refuse(error->text());
  std::string from_table;
  if (const int code = set_table_parameters(options, sizes->back(), *dtype, from_table);
      code != kFine)
    return code;
  Input input(options.input);
  PassTrace trace;
  PassOptions passes;
  trace.follow(passes);
  if (const int code = input.load(passes); code != kFine) return code;
  if (!input.program.split) return refuse("the ops of this IR are not in thread blocks yet");
  if (const auto error = why_no_rows(options, input.program.contract)) {
    return refuse(error->text());
  }
  if (options.rows) sizes = size_of_rows(*options.rows, input.program, *dtype);
  if (!sizes) return refuse("--rows: " + sizes.error().text());
  auto machine = cost::machine_for(input.program, options.machine, input.diagnostics);
  input.report();
  if (!machine) return kUsage;
  if (options.ranks != 0 && options.ranks > machine->ranks()) cost::resize(*machine, options.ranks);
  const auto target =
      find_target(options.target.empty() ? "sm_90" : options.target, input.diagnostics);
  const bool can_run = target && cost::fits(input.program, *machine, input.diagnostics) &&
                       runs_at_once(input.program, *target, input.diagnostics);
  input.report();
  if (!can_run) return target ? kWrongProgram : kUsage;
  return explain_sizes(options, {*sizes, *dtype, from_table}, input, *machine, trace.lines());
}

void explain_options(CommandLine& line, CLI::App& app, ExplainOptions& options) {
  add_input_options(line, app, options.input);
  line.takes_text(app.add_option("--bytes", options.bytes,
                                 "size of the message, such as 64K; of several, as in 1K:1G:4, a "
                                 "table (1M)")
                      ->type_name("SIZES"));
  add_columns_option(line, app, options.input);
  line.takes_number<uint64_t>(
      app.add_option("--rows", options.rows,
                     "of a collective of rows: rows of a message, instead of --bytes")
          ->type_name("N")
          ->excludes(app.get_option("--bytes")));
  line.takes_text(app.add_option("--dtype", options.dtype, "data type (f32)")->type_name("TYPE"));
  timeline::add_machine_option(app, options.machine);
  add_target_option(line, app, options.target, "sm_90",
                    "whose multiprocessors must hold all thread blocks of a rank at once");
  line.takes_text(
      app.add_option("--ranks", options.ranks,
                     "the same with so many ranks (-D R=N, or -D world=N), on so many GPUs")
          ->type_name("N")
          ->check(CLI::Range(1, 65536)));
  app.add_flag("--json", options.json, "one JSON object for each size");
  app.add_flag("--no-choices", options.no_choices,
               "do not compare with other plans of the library, which takes longest");
  timeline::add_timeline_options(line, app, options.timeline, "the call as it is predicted");
}

}  // namespace

void add_explain(CommandLine& line) {
  line.add("explain", "predict what a plan's calls take on a machine, and say why",
           kExplainExamples, explain_options, run_explain);
}

}  // namespace mscclc
