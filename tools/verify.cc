// mscclc verify: proves programs and plans, or says what is wrong with them.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <memory>

#include "passes/prove/prove.h"
#include "plans/plan_json.h"
#include "tools/command_line.h"
#include "tools/files.h"
#include "tools/input.h"
#include "tools/show_witness.h"
#include "tools/summary.h"

namespace mscclc {
namespace {

struct VerifyOptions {
  std::vector<std::string> files;
  InputOptions input;
  std::string target;   ///< name or file; empty: no limits
  std::string witness;  ///< a file, or empty
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

int verify_file(const VerifyOptions& options, const Target* target, const std::string& file) {
  InputOptions one = options.input;
  one.file = file;
  Input input(one);
  PipelineOptions passes;
  if (target != nullptr) passes.limits = target->op_limits();
  if (const int code = input.load(passes); code != kFine) return code;
  if (!input.program.split) return Input::usage(file + ": IR text must be 'split' to be proved");
  std::vector<Unordered> unordered;
  const Proof proof = prove(input.program, input.diagnostics, &unordered);
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
  int worst = kFine;
  for (const std::string& file : options.files) {
    worst = std::max(worst, verify_file(options, target ? &*target : nullptr, file));
  }
  return worst;
}

}  // namespace

void add_verify(CommandLine& line) {
  Command& command = line.add("verify", "prove programs and plans right, or explain what is wrong",
                              "  mscclc verify plans/allreduce_2shot.mscl -D R=8\n"
                              "  mscclc verify allreduce.json broadcast.json\n"
                              "  mscclc verify allreduce.json --target mscclpp\n"
                              "  mscclc verify ring.mscl --witness ring.schedule.json\n"
                              "  mscclc run ring.mscl --schedule ring.schedule.json\n");
  auto options = std::make_shared<VerifyOptions>();
  CLI::App& app = *command.app;
  app.add_option("FILE", options->files,
                 "programs (.mscl) or plans (.json); '-' reads standard input")
      ->type_name("FILE")
      ->required();
  add_define_option(line, app, options->input);
  add_target_option(line, app, options->target, "no limits");
  app.add_option("--witness", options->witness,
                 "if the plan is refused, look for a schedule that shows why, and write it here: "
                 "'mscclc run FILE --schedule' replays it to wrong data or a hang")
      ->type_name("SCHEDULE");
  add_diagnostics_option(line, app, options->input.diagnostics);
  command.run = [options] { return run_verify(*options); };
}

}  // namespace mscclc
