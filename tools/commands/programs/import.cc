// mscclc import: schedules that others wrote, as programs, with a proof.
#include <fmt/format.h>

#include <CLI/App.hpp>

#include "compiler/compile.h"
#include "compiler/format/format.h"
#include "compiler/msccl/read_xml.h"
#include "compiler/msccl/write_program.h"
#include "passes/prove/prove.h"
#include "tools/io/command_line.h"
#include "tools/io/files.h"
#include "tools/io/input.h"
#include "tools/report/summary.h"

namespace mscclc {
namespace {

constexpr const char* kImportExamples = R"(  mscclc import ring.xml -o ring.mscl
  mscclc import ring.xml --gpus-per-node 8 -o ring.mscl
  mscclc import ring.xml | mscclc compile - -o ring.json)";

struct ImportOptions {
  std::string file, output = "-", diagnostics = "text";
  uint32_t gpus_per_node = 0;
};

/// A program made of a schedule, and what the prover says of it.
struct Candidate {
  std::string text;
  Sources sources;
  Diagnostics diagnostics;
  std::optional<Proof> proof;
  bool proved() const { return proof && proof->proved; }
};

void judge(Candidate& made, const std::string& name) {
  const FileId raw = made.sources.add(name, made.text);
  const auto canonical = format_program(made.sources, raw, made.diagnostics);
  if (!canonical) return;
  made.text = *canonical;
  const FileId file = made.sources.add(name, made.text);
  const auto program = compile(made.sources, file, {}, {}, made.diagnostics);
  if (program) made.proof = prove(*program, made.diagnostics);
}

/// Packets without a word at the opening are faster; the prover decides whether they are right.
void make(const msccl::Schedule& schedule, const msccl::Order& order, const ImportOptions& options,
          Candidate& made) {
  const bool packets = schedule.protocol != msccl::Protocol::simple;
  for (const bool opening : {false, true}) {
    if (!opening && !packets) continue;
    made = Candidate{};
    made.text = msccl::write_program(schedule, order, {options.gpus_per_node, opening});
    judge(made, options.output == "-" ? "program" : options.output);
    if (made.proved()) return;
  }
}

int run_import(const ImportOptions& options) {
  auto text = read_input(options.file);
  if (!text) return Input::usage(text.error());
  Sources sources;
  Diagnostics diagnostics;
  const FileId file = sources.add(options.file, *std::move(text));
  const auto schedule = msccl::read_xml(sources, file, diagnostics);
  const auto order = schedule ? msccl::find_order(*schedule, diagnostics) : std::nullopt;
  print_diagnostics(diagnostics, sources, options.diagnostics);
  if (!order) return kWrongProgram;
  Candidate made;
  make(*schedule, *order, options, made);
  if (const auto written = write_file(options.output, made.text); !written) {
    return Input::usage(written.error());
  }
  print_diagnostics(made.diagnostics, made.sources, options.diagnostics);
  const std::string verdict =
      made.proved() ? "proved: " + summarize(*made.proof) : std::string("refused");
  const std::string said = fmt::format("{}: {}\n", options.file, verdict);
  options.output == "-" ? put_error(said) : put(said);
  return made.proved() ? kFine : kWrongProgram;
}

void import_options(CommandLine& line, CLI::App& app, ImportOptions& options) {
  app.add_option("FILE", options.file,
                 "XML of MSCCL, TACCL, TE-CCL, ForestColl or RCCL; '-' reads standard input")
      ->type_name("FILE")
      ->required();
  line.writes(app.add_option("-o,--output", options.output,
                             "file for the program (default: standard output)")
                  ->type_name("FILE"));
  app.add_option("--gpus-per-node", options.gpus_per_node,
                 "GPUs of a node; those of other nodes are reached through ports (default: all)")
      ->type_name("N")
      ->check(CLI::Range(1u, 4096u));
  add_diagnostics_option(line, app, options.diagnostics);
}

}  // namespace

void add_import(CommandLine& line) {
  line.add("import", "turn MSCCL's XML into a program, and prove it", kImportExamples,
           import_options, run_import);
}

}  // namespace mscclc
