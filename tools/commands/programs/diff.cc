// mscclc diff: what changed from one plan or program to another.
#include "tools/diff/diff.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <optional>
#include <sstream>

#include "executor/cost/explanation.h"
#include "executor/cost/machines.h"
#include "executor/cost/model.h"
#include "plans/format/machines/machine.h"
#include "plans/format/proof_record.h"
#include "tools/commands/programs/text_diff.h"
#include "tools/io/command_line.h"
#include "tools/io/files.h"
#include "tools/io/input.h"
#include "tools/io/sizes.h"
#include "tools/report/rows_text.h"
#include "tools/report/summary.h"
#include "tools/timeline/files.h"

namespace mscclc {
namespace {

constexpr const char* kDiffExamples = R"(  mscclc diff ring.json ring.new.json
  mscclc diff plans/allreduce_ring.mscl mine.mscl -D R=4
  mscclc diff ring.json ring.new.json --bytes 4K,16M --machine 4xH200
  git config diff.mscclc.command 'mscclc diff --git')";

struct DiffOptions {
  std::string a, b;
  InputOptions input;
  std::string bytes = "1M", machine;
  std::vector<uint64_t> sizes;  ///< that `bytes` says
  bool no_verify = false;
  std::vector<std::string> git;  ///< what git gives its drivers; none: it does not ask
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
  if (!gate.proof->sums.empty()) facts.push_back({"sums", gate.proof->sums});
  const std::string rows = rows_text(program, *gate.proof);
  if (!rows.empty()) facts.push_back({"rows", rows});
}

/// What two plans say of themselves, whatever is true.
void add_record(const Input& side, std::vector<diff::Fact>& facts) {
  if (side.record) facts.push_back({"recorded proof", proof_text(*side.record)});
}

/// Can the machine that is asked for run it? Reports why not.
bool can_run(const DiffOptions& options, Input& side) {
  if (options.machine.empty()) return true;
  const auto machine = cost::machine_for(side.program, options.machine, side.diagnostics);
  const bool can = machine && cost::fits(side.program, *machine, side.diagnostics);
  side.report();
  return can;
}

/// What calls of f32 take on the machine, or on the one that 'mscclc explain' picks.
std::vector<diff::Fact> times_of(const DiffOptions& options, const Program& program) {
  Diagnostics unheard;
  const auto machine = cost::machine_for(program, options.machine, unheard);
  cost::Model model(program);
  std::vector<diff::Fact> facts;
  for (const uint64_t bytes : options.sizes) {
    const Call call = cost::call_of(program, bytes, Dtype::f32);
    const auto timeline =
        machine ? model.predict(call, *machine, unheard) : std::optional<cost::Timeline>();
    facts.push_back({fmt::format("time of {}", cost::exact_size_text(bytes)),
                     timeline ? fmt::format("{:.2f} us on {}, predicted",
                                            timeline->back_to_back_ns / 1e3, machine->name)
                              : "not predicted; 'mscclc explain' says why"});
  }
  return facts;
}

/// Reads one side; -D is for those that are programs.
int load_side(InputOptions& side, std::string* unheard, std::optional<Input>& input) {
  const auto text = read_input(side.file);
  if (text && text->starts_with('{')) side.defines.clear();
  input.emplace(side);
  if (unheard != nullptr) input->report_into(*unheard);
  // One that does not compile is trouble, not a difference.
  return input->load(PassOptions{}) == kFine ? kFine : kUsage;
}

std::vector<diff::Fact> facts_of(const DiffOptions& options, const Program& program) {
  std::vector<diff::Fact> facts;
  add_summary(program, facts);
  if (!options.no_verify && program.split) add_proof(program, facts);
  return facts;
}

/// Adds what differs to `text`. Anything but kFine: a side cannot be read or compiled, which is
/// said, or added to `unheard`.
int compare(const DiffOptions& options, std::string* unheard, std::string& text) {
  InputOptions of_a = options.input, of_b = options.input;
  of_a.file = options.a;
  of_b.file = options.b;
  std::optional<Input> a, b;
  for (const int code : {load_side(of_a, unheard, a), load_side(of_b, unheard, b)}) {
    if (code != kFine) return code;
  }
  const bool plans = a->kind == InputKind::plan && b->kind == InputKind::plan;
  if (plans && unheard == nullptr && !options.input.defines.empty()) {
    return Input::usage("-D: the parameters and ranks of plans are fixed");
  }
  if (!can_run(options, *a) || !can_run(options, *b)) return kUsage;
  const auto side = [&](const Input& input) {
    const Program& program = input.program;
    diff::PlanSide made{program, facts_of(options, program)};
    if (plans) add_record(input, made.facts);
    if (program.split) made.predicted = [&] { return times_of(options, program); };
    return made;
  };
  text += diff::differences(side(*a), side(*b));
  return kFine;
}

/// The summary of a plan that is new or gone, each line with a sign; nothing if it is no plan.
std::optional<std::string> one_side(const DiffOptions& options, const std::string& file,
                                    char sign) {
  InputOptions of = options.input;
  of.file = file;
  std::string unheard;
  std::optional<Input> side;
  if (load_side(of, &unheard, side) != kFine || side->kind != InputKind::plan) return std::nullopt;
  std::string text;
  std::istringstream in(summarize(side->program));
  for (std::string line; std::getline(in, line);) text += fmt::format("{} {}\n", sign, line);
  return text;
}

/// As git's driver, which gets PATH OLD-FILE OLD-HEX OLD-MODE NEW-FILE NEW-HEX NEW-MODE, and where
/// the file has been renamed NEW-PATH and a message; of a path that is not merged PATH alone. git
/// dies of any exit code but 0.
int run_git(DiffOptions& options) {
  constexpr size_t kOldFile = 1, kOldMode = 3, kNewFile = 4, kNewMode = 6, kNewPath = 7;
  const std::vector<std::string>& git = options.git;
  if (git.size() == 1) {
    put(fmt::format("* not merged: {}\n", git[0]));
    return kFine;
  }
  if (git.size() <= kNewMode) return Input::usage("--git takes what git gives a driver");
  const auto file = [&](size_t i) { return git[i] == "-" ? "./-" : git[i]; };
  options.a = file(kOldFile);
  options.b = file(kNewFile);
  const auto name = [&](const char* side, size_t at, size_t path) {
    return git[at] == "/dev/null" ? git[at] : side + git[path];
  };
  const std::string from = name("a/", kOldFile, 0);
  const std::string to = name("b/", kNewFile, git.size() > kNewPath ? kNewPath : 0);
  std::string unheard, text;
  const bool is_new = git[kOldFile] == "/dev/null", is_gone = git[kNewFile] == "/dev/null";
  if (is_new != is_gone) {
    const auto lines = one_side(options, is_new ? options.b : options.a, is_new ? '+' : '-');
    if (!lines) return text_diff(from, options.a, to, options.b);
    put(fmt::format("--- {}\n+++ {}\n{}", from, to, *lines));
    return kFine;
  }
  if (!is_new && git[kOldMode] != git[kNewMode]) {
    put(fmt::format("{}: mode {}, was {}\n", to, git[kNewMode], git[kOldMode]));
  }
  // JSON of others.
  if (compare(options, &unheard, text) != kFine) return text_diff(from, options.a, to, options.b);
  if (text.empty()) text = "no difference but in numbers, names, descriptions and layout\n";
  put(fmt::format("--- {}\n+++ {}\n{}", from, to, text));
  return kFine;
}

int run_diff(DiffOptions& options) {
  auto sizes = parse_sizes(options.bytes);
  if (!sizes) return Input::usage("--bytes: " + sizes.error().text());
  options.sizes = *std::move(sizes);
  if (!options.git.empty()) return run_git(options);
  if (options.a.empty() || options.b.empty()) {
    put_error(fmt::format("mscclc diff: {} is required\ntry 'mscclc diff --help'\n",
                          options.a.empty() ? "A" : "B"));
    return kUsage;
  }
  if (options.a == "-" || options.b == "-") return Input::usage("diff reads files, no pipes");
  std::string text;
  if (const int code = compare(options, nullptr, text); code != kFine) return code;
  if (text.empty()) return kSame;
  put(fmt::format("--- {}\n+++ {}\n{}", options.a, options.b, text));
  return kDifferent;
}

void diff_options(CommandLine& line, CLI::App& app, DiffOptions& options) {
  // No required(): CLI11 would keep two of git's words for them.
  app.add_option("A", options.a, "a plan, a program, or IR text")->type_name("FILE");
  app.add_option("B", options.b, "the same, after the change")->type_name("FILE");
  add_define_option(line, app, options.input);
  add_diagnostics_option(line, app, options.input.diagnostics);
  line.takes_text(
      app.add_option("--bytes", options.bytes,
                     "sizes of messages of f32 for which times are predicted, such as 4K,16M (1M)")
          ->type_name("SIZES"));
  timeline::add_machine_option(app, options.machine);
  app.add_flag("--no-verify", options.no_verify, "do not compare what is proved: that takes time");
  line.takes_text(
      app.add_option("--git", options.git,
                     "as a driver of 'git diff', which says what to compare; text as diff -u "
                     "does, unless both sides are plans")
          ->type_name("ARGS")
          ->expected(1, 9));
}

}  // namespace

void add_diff(CommandLine& line) {
  line.add("diff", "what changed from one plan or program to another", kDiffExamples, diff_options,
           run_diff);
}

}  // namespace mscclc
