// mscclc verify: proves programs and plans, or says what is wrong with them.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <chrono>
#include <deque>

#include "compiler/builder/flag_order.h"
#include "passes/prove/prove.h"
#include "plans/format/plan_json.h"
#include "runtime/choice/proofs/check_proof.h"
#include "tools/io/command_line.h"
#include "tools/io/files.h"
#include "tools/io/input.h"
#include "tools/io/json_text.h"
#include "tools/io/progress.h"
#include "tools/report/rows_text.h"
#include "tools/report/show_witness.h"
#include "tools/report/summary.h"
#include "tools/run/placed_input.h"

namespace mscclc {
namespace {

constexpr const char* kVerifyExamples = R"(  mscclc verify plans/allreduce_2shot.mscl -D R=8
  mscclc verify allreduce.json broadcast.json
  mscclc verify allreduce.json --target mscclpp
  mscclc verify ring.mscl --json
  mscclc verify --table plans4/*.json
  mscclc verify --table --order ranks *.json
  mscclc verify --together small.json large.json
  mscclc verify --together row.json@0,1 row.json@2,3 all.json --one-order
  mscclc verify ring.mscl --witness ring.schedule.json
  mscclc run ring.mscl --schedule ring.schedule.json
  mscclc verify --together small.json large.json --witness both.schedule.json
  mscclc run small.json large.json --schedule both.schedule.json)";

struct VerifyOptions {
  std::vector<std::string> files;
  InputOptions input;
  std::string target;   ///< name or file; empty: no limits
  std::string witness;  ///< a file, or empty
  std::string order;    ///< that each must keep; empty: what it promises itself
  bool together = false, one_order = false, table = false;
  bool json = false;  ///< all that is printed, on standard output
};

/// `,"sums":[{"expression":"x0 + x1","chunks":8}],"sums_hash":"…"`, or "" where there are none.
std::string sums_json(const SumExpressions& sums) {
  if (sums.all.empty()) return "";
  std::vector<std::string> all;
  for (const SumExpression& e : sums.all) {
    all.push_back(fmt::format("{{\"expression\":{},\"chunks\":{}}}",
                              json_quoted(e.text + sums.owner), e.chunks));
  }
  return fmt::format(",\"sums\":[{}]", fmt::join(all, ",")) +
         (sums.digest.empty() ? "" : ",\"sums_hash\":" + json_quoted(sums.digest));
}

/// The verdict on a file; `proof`: what is proved of it, if it is, and what its sums are.
void put_verdict(const VerifyOptions& options, const std::string& file, const std::string* proof,
                 const SumExpressions& sums) {
  if (!options.json) {
    put(proof == nullptr ? fmt::format("{}: refused\n", file)
                         : fmt::format("{}: proved: {}\n", file, *proof) + sums.text("  "));
    return;
  }
  put(fmt::format("{{\"file\":{},\"proved\":{}{}{}}}\n", json_quoted(file), proof != nullptr,
                  proof == nullptr ? "" : ",\"proof\":" + json_quoted(*proof), sums_json(sums)));
}

/// The diagnostics of a file, then its verdict.
class Report {
 public:
  Report(const VerifyOptions& options, std::string file, Input& input)
      : options_(options), file_(std::move(file)), input_(input) {
    if (options.json) input.report_into(text_);
  }
  /// Returns `code`.
  int finish(int code, const std::string* proof = nullptr, const SumExpressions& sums = {}) {
    input_.report();
    put(text_);
    if (options_.json || code == kFine || compiled_) put_verdict(options_, file_, proof, sums);
    return code;
  }
  /// From now on it is a verdict that the program is refused.
  void compiled() { compiled_ = true; }

 private:
  const VerifyOptions& options_;
  const std::string file_;
  Input& input_;
  std::string text_;
  bool compiled_ = false;
};

ShowWitness how_to_show(const VerifyOptions& options, const std::vector<std::string>& files) {
  std::string command = fmt::format("mscclc run {}", fmt::join(files, " "));
  for (const std::string& define : options.input.defines) command += " -D " + define;
  if (!options.target.empty()) command += " --target " + options.target;
  return {options.witness, command, options.input.diagnostics == "json", options.json};
}

/// What is asked for goes before what the program promises.
void ask_for_order(const VerifyOptions& options, Program& program) {
  if (const auto order = find_sum_order(options.order)) program.contract.order = *order;
}

// Are the limits of the target kept? Writing the plan shows it.
bool fits(const Target& target, Input& input) {
  const auto nowhere = [](std::string_view) { return true; };
  return write_plan(input.program, target, nowhere, input.diagnostics);
}

/// A registry refuses a file that claims more than is proved; here only the plan is judged.
void warn_of_claims(const std::string& file, const Proof& proof, Input& input) {
  Diagnostics found;
  if (!input.record || check_claims(file, input.program, *input.record, proof, found)) return;
  for (Diagnostic d : found.all()) {
    d.severity = Severity::warning;
    input.diagnostics.add(std::move(d));
  }
}

int verify_file(const VerifyOptions& options, const Target* target, const std::string& file,
                Input& input) {
  PassOptions passes;
  if (target != nullptr) passes.limits = target->op_limits();
  Report report(options, file, input);
  if (const int code = input.load(passes); code != kFine) {
    if (code == kWrongProgram && !options.witness.empty()) {
      show_no_witness("a program with such errors cannot be run", how_to_show(options, {file}));
    }
    return report.finish(code);
  }
  if (!input.program.split) return Input::usage(file + ": IR text must be 'split' to be proved");
  // Programs have been warned of when they were built.
  if (input.kind == InputKind::plan) warn_of_flag_order(input.program, input.diagnostics);
  ask_for_order(options, input.program);
  std::vector<Unordered> unordered;
  SumExpressions sums;
  const Proof proof = prove(input.program, input.diagnostics,
                            {.try_copies = true,
                             .unordered = &unordered,
                             .sums = options.order.empty() ? nullptr : &sums});
  const bool ordered = proof.proved && can_keep_order(input.program, proof, input.diagnostics);
  const bool kept = ordered && (target == nullptr || fits(*target, input));
  report.compiled();
  if (proof.proved) warn_of_claims(file, proof, input);
  if (proof.proved && kept) {
    const std::string rows = rows_text(input.program, proof);
    const std::string text = summarize(proof) +
                             (target == nullptr ? "" : ", fits " + target->name) +
                             (rows.empty() ? "" : "; " + rows);
    return report.finish(kFine, &text, sums);
  }
  report.finish(kWrongProgram);
  if (options.witness.empty()) return kWrongProgram;
  const ShowWitness show = how_to_show(options, {file});
  if (proof.proved) {
    show_no_witness(ordered ? "the plan is right; it only breaks limits of the target"
                            : "the plan is right; it only cannot keep its 'order:'",
                    show);
    return kWrongProgram;
  }
  return show_witness(input.program, unordered, show) ? kWrongProgram : kUsage;
}

/// A line of the table, and how the file fares.
struct Row {
  const char* verdict = "not read";
  std::string reason;
  int code = kWrongProgram;
};

Row row_of(const VerifyOptions& options, const Target* target, Input& input) {
  PassOptions passes;
  if (target != nullptr) passes.limits = target->op_limits();
  if (const int code = input.load(passes); code != kFine) {
    return {"not read", input.first_error(), code};
  }
  if (!input.program.split) return {"not read", "IR text must be 'split'", kUsage};
  ask_for_order(options, input.program);
  const Proof proof = prove(input.program, input.diagnostics);
  if (proof.proved && can_keep_order(input.program, proof, input.diagnostics) &&
      (target == nullptr || fits(*target, input))) {
    return {"proved", summarize(proof), kFine};
  }
  const std::vector<Diagnostic>& all = input.diagnostics.all();
  const auto first = std::ranges::find(all, Severity::error, &Diagnostic::severity);
  return {first->code == "undecided" ? "undecided" : "refused", first->message, kWrongProgram};
}

/// Calls `verify` with each file and its input; returns the worst of its exit codes.
template <class Verify>
int with_each_file(const VerifyOptions& options, const Verify& verify) {
  int worst = kFine;
  Progress progress("verify", options.files.size());
  for (const std::string& file : options.files) {
    progress.next(file);
    InputOptions one = options.input;
    one.file = file;
    Input input(one);
    worst = std::max(worst, verify(file, input));
  }
  return worst;
}

// Of each refused file only the first reason; what cannot be read is reported as always.
int verify_table(const VerifyOptions& options, const Target* target) {
  size_t width = 4;
  for (const std::string& file : options.files) width = std::max(width, file.size());
  put(fmt::format("{:<{}}  {:<9}  {:>9}  {}\n", "file", width, "verdict", "ms", "reason"));
  int proved = 0;
  const int worst = with_each_file(options, [&](const std::string& file, Input& input) {
    const auto start = std::chrono::steady_clock::now();
    const Row row = row_of(options, target, input);
    const std::chrono::duration<double, std::milli> taken =
        std::chrono::steady_clock::now() - start;
    put(fmt::format("{:<{}}  {:<9}  {:>9.1f}  {}\n", file, width, row.verdict, taken.count(),
                    row.reason));
    proved += row.code == kFine ? 1 : 0;
    return row.code;
  });
  put(fmt::format("{} of {} proved\n", proved, options.files.size()));
  return worst;
}

int verify_each(const VerifyOptions& options, const Target* target) {
  return with_each_file(options, [&](const std::string& file, Input& input) {
    return verify_file(options, target, file, input);
  });
}

/// Loads and proves each plan alone: what is wrong with one is not looked for in the set.
int verify_alone(VerifyOptions options, const Target* target, std::deque<PlacedInput>& inputs) {
  int worst = kFine;
  options.witness.clear();
  for (const std::string& name : options.files) {
    PlacedInput& one = inputs.emplace_back(options.input, name);
    if (const auto split = one.split_name(); !split) return Input::usage(split.error());
    const int code = verify_file(options, target, name, one.input);
    worst = std::max(worst, code);
    if (code != kFine) continue;
    if (const auto chosen = one.choose_ranks(); !chosen) return Input::usage(chosen.error());
  }
  return worst;
}

int verify_set(const VerifyOptions& options, const Target* target) {
  const ShowWitness show = how_to_show(options, options.files);
  std::deque<PlacedInput> inputs;
  if (const int code = verify_alone(options, target, inputs); code != kFine) {
    if (code == kWrongProgram && !options.witness.empty()) {
      show_no_witness("a FILE is wrong by itself; 'mscclc verify FILE --witness' looks for one",
                      show);
    }
    return code;
  }
  std::vector<SharedPlan> plans;
  for (const PlacedInput& one : inputs) plans.push_back({&one.input.program, one.name, one.ranks});
  Diagnostics diagnostics;
  RefusedCalls refused;
  const CallOrder call_order = options.one_order ? CallOrder::one : CallOrder::own;
  const bool proved = prove_together(plans, call_order, diagnostics, &refused);
  print_diagnostics(diagnostics, sources_of(inputs), options.input.diagnostics);
  put(fmt::format("together: {}\n", proved ? "proved" : "refused"));
  if (proved) return kFine;
  if (options.witness.empty()) return kWrongProgram;
  return show_witness(placed(inputs), refused, show) ? kWrongProgram : kUsage;
}

int run_verify(const VerifyOptions& options) {
  if (!options.witness.empty() && options.files.size() > 1 && !options.together) {
    return Input::usage("--witness takes one FILE, or several with --together");
  }
  if (const auto fine = needs_file("a witness", options.witness); !fine) {
    return Input::usage(fine.error());
  }
  std::optional<Target> target;
  if (!options.target.empty()) {
    Diagnostics diagnostics;
    target = find_target(options.target, diagnostics);
    print_diagnostics(diagnostics, Sources(), options.input.diagnostics);
    if (!target) return kUsage;
  }
  const Target* limits = target ? &*target : nullptr;
  if (options.together) return verify_set(options, limits);
  return options.table ? verify_table(options, limits) : verify_each(options, limits);
}

void verify_options(CommandLine& line, CLI::App& app, VerifyOptions& options) {
  app.add_option("FILE", options.files,
                 "programs (.mscl) or plans (.json); '-' reads standard input")
      ->type_name("FILE")
      ->required();
  add_define_option(line, app, options.input);
  add_columns_option(line, app, options.input);
  app.add_flag("--together", options.together,
               "also prove that calls of these plans, one after another in any order, do not "
               "disturb each other: they share channels, the count of calls, and scratch where "
               "they say 'reuse_scratch'. FILE@0,1 is a plan that runs on these ranks");
  app.add_flag("--one-order", options.one_order,
               "with --together: plans on different ranks are called in one order, too; without "
               "it, each rank may have its own")
      ->needs(app.get_option("--together"));
  add_target_option(line, app, options.target, "no limits");
  line.writes(
      app.add_option(
             "--witness", options.witness,
             "if the plan is refused, or the set of plans is --together, look for a schedule that "
             "shows why, and write it here: 'mscclc run FILE... --schedule' replays it to wrong "
             "data or a hang")
          ->type_name("SCHEDULE"));
  add_order_option(line, app, options.order,
                   "show what the sums are; they must keep to this, whatever the program says");
  app.add_flag("--table", options.table,
               "one line for each FILE: verdict, milliseconds (compiling included), and the first "
               "reason or what is proved")
      ->excludes(app.get_option("--together"))
      ->excludes(app.get_option("--witness"));
  add_diagnostics_option(line, app, options.input.diagnostics);
  app.add_flag("--json", options.json,
               "print diagnostics, and the verdict on each FILE, as JSON on standard output, one "
               "object per line (docs/diagnostics.md)")
      ->excludes(app.get_option("--table"))
      ->excludes(app.get_option("--together"));
}

}  // namespace

void add_verify(CommandLine& line) {
  line.add("verify", "prove programs and plans right, or explain what is wrong", kVerifyExamples,
           verify_options, [](VerifyOptions& options) {
             if (options.json) options.input.diagnostics = "json";
             return run_verify(options);
           });
}

}  // namespace mscclc
