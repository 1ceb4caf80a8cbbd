// mscclc diff: what changed from one plan or program to another.
#include "tools/diff/diff.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <optional>
#include <sstream>

#include "tools/base/command_line.h"
#include "tools/base/files.h"
#include "tools/base/input.h"
#include "tools/report/rows_text.h"
#include "tools/report/summary.h"

namespace mscclc {
namespace {

constexpr const char* kDiffExamples = R"(  mscclc diff ring.json ring.new.json
  mscclc diff plans/allreduce_ring.mscl mine.mscl -D R=4)";

struct DiffOptions {
  std::string a, b;
  InputOptions input;
  bool no_verify = false;
};

/// As diff(1): 0 no difference, 1 some, and 2 what went wrong.
constexpr int kSame = kFine, kDifferent = 1;

/// The lines of the summary, without its first one: that is the program's head.
void add_summary(const Program& program, std::vector<diff::Fact>& facts) {
  constexpr size_t kKey = 14;  // "  blocks      "
  std::istringstream in(summarize(program));
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    if (line.size() <= kKey) continue;
    const std::string key = line.substr(2, line.find(' ', 2) - 2);
    if (key != "sizes") facts.push_back({key, line.substr(kKey)});  // 'select' has them
  }
}

/// A plan that is not proved is compared all the same.
void add_proof(const Program& program, std::vector<diff::Fact>& facts) {
  ProofGate gate{.try_copies = true};
  Diagnostics why;
  if (!gate.pass(program, why) || !gate.proof) {
    facts.push_back({"proved", "not proved; 'mscclc verify' says why"});
    return;
  }
  facts.push_back({"proved", summarize(*gate.proof)});
  const std::string rows = rows_text(program, *gate.proof);
  if (!rows.empty()) facts.push_back({"rows", rows});
}

/// Reads one side; -D is for those that are programs.
int load_side(InputOptions& side, std::optional<Input>& input) {
  const auto text = read_input(side.file);
  if (text && text->starts_with('{')) side.defines.clear();
  input.emplace(side);
  // One that does not compile is trouble, not a difference.
  return input->load(PassOptions{}) == kFine ? kFine : kUsage;
}

std::vector<diff::Fact> facts_of(const DiffOptions& options, const Program& program) {
  std::vector<diff::Fact> facts;
  add_summary(program, facts);
  if (!options.no_verify && program.split) add_proof(program, facts);
  return facts;
}

int run_diff(const DiffOptions& options) {
  if (options.a == "-" || options.b == "-") return Input::usage("diff reads files, no pipes");
  InputOptions of_a = options.input, of_b = options.input;
  of_a.file = options.a;
  of_b.file = options.b;
  std::optional<Input> a, b;
  for (const int code : {load_side(of_a, a), load_side(of_b, b)}) {
    if (code != kFine) return code;
  }
  const std::string text = diff::differences({a->program, facts_of(options, a->program)},
                                             {b->program, facts_of(options, b->program)});
  if (text.empty()) return kSame;
  put(fmt::format("--- {}\n+++ {}\n{}", options.a, options.b, text));
  return kDifferent;
}

void diff_options(CommandLine& line, CLI::App& app, DiffOptions& options) {
  app.add_option("A", options.a, "a plan, a program, or IR text")->required()->type_name("FILE");
  app.add_option("B", options.b, "the same, after the change")->required()->type_name("FILE");
  add_define_option(line, app, options.input);
  add_diagnostics_option(line, app, options.input.diagnostics);
  app.add_flag("--no-verify", options.no_verify, "do not compare what is proved: that takes time");
}

}  // namespace

void add_diff(CommandLine& line) {
  line.add("diff", "what changed from one plan or program to another", kDiffExamples, diff_options,
           run_diff);
}

}  // namespace mscclc
