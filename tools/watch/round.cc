#include "tools/watch/round.h"

#include <fmt/format.h>

#include <chrono>

#include "executor/simulator/run.h"
#include "passes/prove/prove.h"
#include "tools/report/summary.h"

namespace mscclc {
namespace {

constexpr double kMaxMemory = double{1} * (1 << 30);  // of a run between two key strokes

/// The program is run if it is proved: what else it did would be chance.
std::string prove_and_run(Input& input, uint64_t bytes, bool& right) {
  if (!input.program.split) return "IR text must be 'split' to be proved";
  const bool proved = prove(input.program, input.diagnostics, {.try_copies = true}).proved;
  if (!proved) {
    input.report();
    return "refused";
  }
  const auto ranks = input.program.ranks.size();
  if (memory_needed(input.program, bytes) > kMaxMemory) {
    right = true;
    return fmt::format("proved; not run, as {} ranks take more than 1 GiB", ranks);
  }
  const RunResult result = simulate(input.program, {.bytes = bytes}, input.diagnostics);
  input.report();
  right = result.status == RunStatus::right;
  if (result.status == RunStatus::refused) return "proved; cannot run with this size";
  return fmt::format("proved, {} on {} ranks", right ? "right" : "WRONG", ranks);
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

Round run_round(const InputOptions& options, uint64_t bytes) {
  const auto start = std::chrono::steady_clock::now();
  Input input(options);
  Round round;
  switch (input.load({})) {
    case kFine:
      round.verdict = prove_and_run(input, bytes, round.right);
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
