// mscclc verify: proves programs and plans, or says what is wrong with them.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <memory>

#include "passes/prove/prove.h"
#include "tools/command_line.h"
#include "tools/files.h"
#include "tools/input.h"
#include "tools/summary.h"

namespace mscclc {
namespace {

struct VerifyOptions {
  std::vector<std::string> files;
  InputOptions input;
};

int verify_file(const VerifyOptions& options, const std::string& file) {
  InputOptions one = options.input;
  one.file = file;
  Input input(one);
  PipelineOptions passes;
  if (const int code = input.load(passes); code != kFine) return code;
  if (!input.program.split) return Input::usage(file + ": IR text must be 'split' to be proved");
  const Proof proof = prove(input.program, input.diagnostics);
  input.report();
  put(fmt::format("{}: {}\n", file, proof.proved ? "proved: " + summarize(proof) : "refused"));
  return proof.proved ? kFine : kWrongProgram;
}

int run_verify(const VerifyOptions& options) {
  int worst = kFine;
  for (const std::string& file : options.files) {
    worst = std::max(worst, verify_file(options, file));
  }
  return worst;
}

}  // namespace

void add_verify(CommandLine& line) {
  Command& command = line.add("verify", "prove programs and plans right, or explain what is wrong",
                              "  mscclc verify plans/allreduce_2shot.mscl -D R=8\n"
                              "  mscclc verify allreduce.json broadcast.json\n");
  auto options = std::make_shared<VerifyOptions>();
  CLI::App& app = *command.app;
  app.add_option("FILE", options->files,
                 "programs (.mscl) or plans (.json); '-' reads standard input")
      ->type_name("FILE")
      ->required();
  add_define_option(line, app, options->input);
  add_diagnostics_option(line, app, options->input.diagnostics);
  command.run = [options] { return run_verify(*options); };
}

}  // namespace mscclc
