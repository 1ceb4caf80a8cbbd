// mscclc fix: looks for a patch of a program that is refused, proves it, and applies it.
#include "compiler/fix/fix.h"

#include <fmt/format.h>

#include <CLI/App.hpp>

#include "compiler/fix/edits.h"
#include "compiler/proof_gate.h"
#include "passes/prove/prove.h"
#include "tools/io/command_line.h"
#include "tools/io/files.h"
#include "tools/io/input.h"

namespace mscclc {
namespace {

constexpr const char* kFixExamples = R"(  mscclc fix ring.mscl
  mscclc fix ring.mscl -D R=16 --dry-run)";

struct FixOptions {
  InputOptions input;
  bool dry_run = false;
};

/// Is there nothing to do? Otherwise what is wrong has been printed.
bool is_proved(Input& input) {
  if (!input.program.split) return false;
  const Proof proof = prove(input.program, input.diagnostics, {.try_copies = true});
  const bool right = proof.proved && can_keep_order(input.program, proof, input.diagnostics);
  input.report();
  return right;
}

int run_fix(const FixOptions& options) {
  const std::string& file = options.input.file;
  Input input(options.input);
  const int code = input.load({});
  if (code == kUsage) return kUsage;
  if (input.kind != InputKind::program) return Input::usage(file + " is a plan; fix its program");
  if (code == kFine && is_proved(input)) {
    put(fmt::format("{}: proved, nothing to fix\n", file));
    return kFine;
  }
  const FixResult found = input.find_fix();
  if (!found.refused.empty()) return Input::usage(fmt::format("{} {}", file, found.refused));
  if (found.text.empty()) {
    put(fmt::format("{}: no patch found: none of {} changes is proved\n", file, found.tried));
    return kWrongProgram;
  }
  put(fix::unified_diff(file, input.sources.file(0).text, found.text));
  const bool writes = !options.dry_run && file != "-";
  if (writes) {
    if (const auto written = write_file(file, found.text); !written) {
      return Input::usage(written.error());
    }
  }
  put(fmt::format("{}: {}: {}\n", file, writes ? "fixed and proved" : "can be fixed, proved",
                  found.title));
  return kFine;
}

void fix_options(CommandLine& line, CLI::App& app, FixOptions& options) {
  app.add_option("FILE", options.input.file, "a program; '-' reads standard input")
      ->type_name("FILE")
      ->required();
  add_define_option(line, app, options.input);
  add_diagnostics_option(line, app, options.input.diagnostics);
  app.add_flag("--dry-run", options.dry_run, "show the patch, and change nothing");
}

}  // namespace

void add_fix(CommandLine& line) {
  line.add("fix", "fix a program by a patch that is proved", kFixExamples, fix_options, run_fix);
}

}  // namespace mscclc
