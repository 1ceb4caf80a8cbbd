// mscclc verify: proves programs and plans, or says what is wrong with them.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>

#include "passes/prove/prove.h"
#include "plans/plan_json.h"
#include "tools/command_line.h"
#include "tools/files.h"
#include "tools/input.h"
#include "tools/rank_list.h"
#include "tools/show_witness.h"
#include "tools/summary.h"

namespace mscclc {
namespace {

struct VerifyOptions {
  std::vector<std::string> files;
  InputOptions input;
  std::string target;   ///< name or file; empty: no limits
  std::string witness;  ///< a file, or empty
  bool together = false, one_order = false, table = false;
};

/// One FILE on its way through the prover.
struct Verified {
  explicit Verified(const InputOptions& options) : options(options), input(this->options) {}
  const InputOptions options;
  Input input;
  std::vector<uint32_t> ranks;  ///< of the world
};

// The command that runs the program on the host machine.
std::string replay_command(const VerifyOptions& options, const std::string& file) {
  std::string command = "mscclc run " + file;
  for (const std::string& define : options.input.defines) command += " -D " + define;
  return command;
}

// Are the limits of the target kept? Writing the plan tells.
bool fits(const Target& target, Input& input) {
  const auto nowhere = [](std::string_view) { return true; };
  return write_plan(input.program, target, nowhere, input.diagnostics);
}

int verify_file(const VerifyOptions& options, const Target* target, const std::string& file,
                Input& input) {
  PipelineOptions passes;
  if (target != nullptr) passes.limits = target->op_limits();
  if (const int code = input.load(passes); code != kFine) return code;
  if (!input.program.split) return Input::usage(file + ": IR text must be 'split' to be proved");
  std::vector<Unordered> unordered;
  const Proof proof = prove(input.program, input.diagnostics, {.unordered = &unordered});
  const bool kept = target == nullptr || fits(*target, input);
  input.report();
  if (proof.proved && kept) {
    put(fmt::format("{}: proved: {}{}\n", file, summarize(proof),
                    target == nullptr ? "" : ", fits " + target->name));
    return kFine;
  }
  put(fmt::format("{}: refused\n", file));
  const bool json = options.input.diagnostics == "json";
  if (!proof.proved && !options.witness.empty() &&
      !show_witness(input.program, unordered, options.witness, replay_command(options, file),
                    json)) {
    return kUsage;
  }
  return kWrongProgram;
}

/// A line of the table, and how the file fares.
struct Row {
  const char* verdict = "not read";
  std::string reason;
  int code = kWrongProgram;
};

Row row_of(const Target* target, Input& input) {
  PipelineOptions passes;
  if (target != nullptr) passes.limits = target->op_limits();
  if (const int code = input.load(passes); code != kFine) return {"not read", "", code};
  if (!input.program.split) return {"not read", "IR text must be 'split'", kUsage};
  const Proof proof = prove(input.program, input.diagnostics);
  if (proof.proved && (target == nullptr || fits(*target, input))) {
    return {"proved", summarize(proof), kFine};
  }
  const Diagnostic& first = input.diagnostics.all().front();
  return {first.code == "undecided" ? "undecided" : "refused", first.message, kWrongProgram};
}

// Of each refused file the first reason only; what cannot be read is told as always.
int verify_table(const VerifyOptions& options, const Target* target) {
  size_t width = 4;
  for (const std::string& file : options.files) width = std::max(width, file.size());
  put(fmt::format("{:<{}}  {:<9}  {:>9}  {}\n", "file", width, "verdict", "ms", "reason"));
  int worst = kFine, proved = 0;
  for (const std::string& file : options.files) {
    InputOptions one = options.input;
    one.file = file;
    Input input(one);
    const auto start = std::chrono::steady_clock::now();
    const Row row = row_of(target, input);
    const std::chrono::duration<double, std::milli> taken =
        std::chrono::steady_clock::now() - start;
    put(fmt::format("{:<{}}  {:<9}  {:>9.1f}  {}\n", file, width, row.verdict, taken.count(),
                    row.reason));
    worst = std::max(worst, row.code);
    proved += row.code == kFine ? 1 : 0;
  }
  put(fmt::format("{} of {} proved\n", proved, options.files.size()));
  return worst;
}

int verify_each(const VerifyOptions& options, const Target* target) {
  int worst = kFine;
  for (const std::string& file : options.files) {
    InputOptions one = options.input;
    one.file = file;
    Input input(one);
    worst = std::max(worst, verify_file(options, target, file, input));
  }
  return worst;
}

// The ranks that a plan runs on: those behind '@', or as many as it has, from 0.
std::string choose_ranks(const std::string& file, Verified& verified) {
  const uint32_t count = verified.input.program.contract.ranks;
  if (verified.ranks.empty()) {
    verified.ranks.resize(count);
    std::iota(verified.ranks.begin(), verified.ranks.end(), 0u);
  }
  if (verified.ranks.size() == count) return "";
  return fmt::format("{}: the plan has {} ranks", file, count);
}

// Each alone first: what is wrong with one is not looked for in the set.
int verify_set(const VerifyOptions& options, const Target* target) {
  std::vector<std::unique_ptr<Verified>> all;
  int worst = kFine;
  for (const std::string& name : options.files) {
    FileOfRanks named;
    std::string error;
    if (!split_ranks(name, named, error)) return Input::usage(error);
    InputOptions one = options.input;
    one.file = named.file;
    Verified& verified = *all.emplace_back(std::make_unique<Verified>(one));
    verified.ranks = named.ranks;
    const int code = verify_file(options, target, name, verified.input);
    worst = std::max(worst, code);
    if (code != kFine) continue;
    error = choose_ranks(name, verified);
    if (!error.empty()) return Input::usage(error);
  }
  if (worst != kFine) return worst;
  std::vector<SharedPlan> plans;
  Sources sources;
  for (size_t i = 0; i < all.size(); ++i) {
    plans.push_back({&all[i]->input.program, options.files[i], all[i]->ranks});
    for (FileId f = 0; f < all[i]->input.sources.size(); ++f) {
      const SourceFile& file = all[i]->input.sources.file(f);
      sources.add(file.name, file.text);
    }
  }
  Diagnostics diagnostics;
  const CallOrder call_order = options.one_order ? CallOrder::one : CallOrder::own;
  const bool proved = prove_together(plans, call_order, diagnostics);
  print_diagnostics(diagnostics, sources, options.input.diagnostics);
  put(fmt::format("together: {}\n", proved ? "proved" : "refused"));
  return proved ? kFine : kWrongProgram;
}

int run_verify(const VerifyOptions& options) {
  if (!options.witness.empty() && options.files.size() > 1) {
    return Input::usage("--witness is of one FILE");
  }
  std::optional<Target> target;
  if (!options.target.empty()) {
    Diagnostics diagnostics;
    target = find_target(options.target, diagnostics);
    print_diagnostics(diagnostics, Sources(), options.input.diagnostics);
    if (!target) return kWrongProgram;
  }
  const Target* limits = target ? &*target : nullptr;
  if (options.together) return verify_set(options, limits);
  return options.table ? verify_table(options, limits) : verify_each(options, limits);
}

}  // namespace

void add_verify(CommandLine& line) {
  Command& command =
      line.add("verify", "prove programs and plans right, or explain what is wrong",
               "  mscclc verify plans/allreduce_2shot.mscl -D R=8\n"
               "  mscclc verify allreduce.json broadcast.json\n"
               "  mscclc verify allreduce.json --target mscclpp\n"
               "  mscclc verify --table *.json\n"
               "  mscclc verify --together small.json large.json\n"
               "  mscclc verify --together row.json@0,1 row.json@2,3 all.json --one-order\n"
               "  mscclc verify ring.mscl --witness ring.schedule.json\n"
               "  mscclc run ring.mscl --schedule ring.schedule.json\n");
  auto options = std::make_shared<VerifyOptions>();
  CLI::App& app = *command.app;
  app.add_option("FILE", options->files,
                 "programs (.mscl) or plans (.json); '-' reads standard input")
      ->type_name("FILE")
      ->required();
  add_define_option(line, app, options->input);
  app.add_flag("--together", options->together,
               "prove also that calls of these plans, one after another in any order, do not "
               "disturb each other: they share channels, the count of calls, and scratch where "
               "they say 'reuse_scratch'. FILE@0,1 is a plan that runs on these ranks");
  app.add_flag("--one-order", options->one_order,
               "with --together: also plans that run on different ranks are called in one order; "
               "without it, each rank may call them in its own")
      ->needs(app.get_option("--together"));
  add_target_option(line, app, options->target, "no limits");
  app.add_option("--witness", options->witness,
                 "if the plan is refused, look for a schedule that shows why, and write it here: "
                 "'mscclc run FILE --schedule' replays it to wrong data or a hang")
      ->type_name("SCHEDULE")
      ->excludes(app.get_option("--together"));
  app.add_flag("--table", options->table,
               "one line for each FILE: verdict, milliseconds (compiling included), and the first "
               "reason or what is proved")
      ->excludes(app.get_option("--together"))
      ->excludes(app.get_option("--witness"));
  add_diagnostics_option(line, app, options->input.diagnostics);
  command.run = [options] { return run_verify(*options); };
}

}  // namespace mscclc
