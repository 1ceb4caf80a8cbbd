#include "tools/watch/round.h"

#include <fmt/format.h>

#include <chrono>

#include "executor/simulator/run.h"
#include "ir/program/rank_parts.h"
#include "passes/prove/prove.h"
#include "tools/report/summary.h"

namespace mscclc {
namespace {

constexpr double kMaxMemory = double{1} * (1 << 30);  // of a run between two key strokes
/// A run of so little ends soon, whatever the program does.
constexpr double kSmallRun = double{1} * (1 << 26);

/// What became of a program.
struct Tried {
  bool proved = false;
  RunResult run;       ///< as far as it is proved
  Diagnostics of_run;  ///< of a program that is not proved: chance
};

/// Proves the program and runs it, side by side if the run is a small one.
Tried prove_and_simulate(Input& input, const RunSpec& spec, double memory, FiberPool& stacks) {
  Tried tried;
  const auto prove_it = [&] {
    tried.proved = prove(input.program, input.diagnostics, {.try_copies = true}).proved;
  };
  const auto run_it = [&] { tried.run = simulate(input.program, spec, tried.of_run, &stacks); };
  if (memory <= kSmallRun) {
    run_threads(2, [&](uint32_t i) { i == 0 ? prove_it() : run_it(); });
    return tried;
  }
  prove_it();
  if (tried.proved && memory <= kMaxMemory) run_it();
  return tried;
}

/// What a program does that is not proved is not said: it would be chance.
std::string prove_and_run(Input& input, uint64_t bytes, FiberPool& stacks, bool& right) {
  if (!input.program.split) return "IR text must be 'split' to be proved";
  const double memory = memory_needed(input.program, bytes);
  const Tried tried = prove_and_simulate(input, {.bytes = bytes}, memory, stacks);
  input.report();
  if (!tried.proved) return "refused";
  const auto ranks = input.program.ranks.size();
  const std::string on = fmt::format("{} rank{}", ranks, ranks == 1 ? "" : "s");
  if (memory > kMaxMemory) {
    right = true;
    return fmt::format("proved; not run, as it takes more than 1 GiB on {}", on);
  }
  for (const Diagnostic& d : tried.of_run.all()) input.diagnostics.add(d);
  input.report();
  right = tried.run.status == RunStatus::right;
  if (tried.run.status == RunStatus::refused) return "proved; cannot run with this size";
  return fmt::format("proved, {} on {}", right ? "right" : "WRONG", on);
}

/// Texts of -D are sources without a file; a plan is a file without a source.
std::vector<ReadFile> files_of(const Input& input, const std::string& main) {
  std::vector<ReadFile> files = {{main, ""}};
  if (input.sources.size() > 0) files.front().text = input.sources.file(0).text;
  for (FileId id = 1; id < input.sources.size(); ++id) {
    const SourceFile& source = input.sources.file(id);
    if (!source.name.starts_with("-D ")) files.push_back({source.name, source.text});
  }
  return files;
}

}  // namespace

Round run_round(const InputOptions& options, uint64_t bytes, FiberPool& stacks) {
  const auto start = std::chrono::steady_clock::now();
  Input input(options);
  Round round;
  switch (input.load({})) {
    case kFine:
      round.verdict = prove_and_run(input, bytes, stacks, round.right);
      break;
    case kWrongProgram:
      round.verdict = "refused";
      break;
    default:
      round.verdict = "not read";
  }
  const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - start;
  round.verdict += fmt::format("; {:.1f} ms", taken.count());
  round.files = files_of(input, options.file);
  return round;
}

}  // namespace mscclc
