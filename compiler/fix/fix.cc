#include "compiler/fix/fix.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <new>
#include <unordered_set>
#include <utility>

#include "compiler/fix/candidates.h"
#include "compiler/fix/judge.h"
#include "compiler/fix/outline.h"

namespace mscclc {
namespace {

using namespace fix;

/// Tries candidates, step by step, until the program is proved or the limits are reached.
class Search {
 public:
  Search(std::string file, const std::string& text, const FrontEndOptions& front,
         const PassOptions& passes, const FixLimits& limits)
      : file_(std::move(file)),
        limits_(limits),
        original_(text),
        promises_(original_.promises()),
        judge_(file_, original_, front, passes, {limits.seconds, [this] { return seconds(); }}) {}

  FixResult run() {
    FixResult result;
    std::string text = original_.text();
    Verdict reached = judge_.judge(text);
    for (uint32_t step = 0; step < limits_.steps && !reached.proved; ++step) {
      const auto next = best_of(text, reached);
      if (!next) break;
      text = next->text;
      reached = next->verdict;
      result.title += (result.title.empty() ? "" : "; ") + next->title;
    }
    result.tried = tried_;
    if (reached.proved && text != original_.text()) result.text = std::move(text);
    return result;
  }

 private:
  struct Step {
    std::string text, title;
    Verdict verdict;
  };

  /// Of processors, since the search began.
  double seconds() const { return static_cast<double>(std::clock() - begin_) / CLOCKS_PER_SEC; }

  bool spent() const {
    return tried_ >= limits_.candidates || judge_.ops() > limits_.ops ||
           seconds() >= limits_.seconds;
  }

  /// The first candidate that is proved, or else the one that comes furthest.
  std::optional<Step> best_of(const std::string& text, const Verdict& reached) {
    const Outline outline(text);
    std::optional<Step> best;
    for (const Candidate& candidate : candidates(outline, file_, judge_.errors(text))) {
      if (spent()) break;
      std::string changed = patched(text, candidate.edits);
      if (!seen_.insert(changed).second || Outline(changed).promises() != promises_) continue;
      ++tried_;
      const Verdict verdict = judge_.judge(changed);
      if (!verdict.better_than(best ? best->verdict : reached)) continue;
      best = Step{std::move(changed), candidate.title, verdict};
      if (verdict.proved) break;
    }
    return best;
  }

  const std::string file_;
  const FixLimits limits_;
  const Outline original_;
  const std::string promises_;
  const std::clock_t begin_ = std::clock();
  Judge judge_;
  std::unordered_set<std::string> seen_;
  uint32_t tried_ = 0;
};

}  // namespace

FixResult find_fix(const std::string& file, const std::string& text, const FrontEndOptions& front,
                   const PassOptions& passes, const FixLimits& limits) {
  if (text.size() > limits.bytes) {
    return {.refused = fmt::format("has more than {} bytes, which is too long to look for patches",
                                   limits.bytes)};
  }
  if (Outline(text).is_ir()) return {.refused = "is IR text; fix its program"};
  try {
    return Search(file, text, front, passes, limits).run();
  } catch (const std::bad_alloc&) {
    return {};  // it cannot be proved here
  }
}

void offer_patch(Diagnostics& diagnostics, const Sources& sources, FileId file,
                 const FrontEndOptions& front, const PassOptions& passes, const FixLimits& limits) {
  const auto first = std::ranges::find(diagnostics.all(), Severity::error, &Diagnostic::severity);
  if (first == diagnostics.all().end() || !may_be_fixed(*first)) return;
  const SourceFile& source = sources.file(file);
  const FixResult found = find_fix(source.name, source.text, front, passes, limits);
  if (found.text.empty()) return;
  diagnostics.add_patch(first - diagnostics.all().begin(),
                        {found.title, difference(source.text, found.text, file)});
}

}  // namespace mscclc
