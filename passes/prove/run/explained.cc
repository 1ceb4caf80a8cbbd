#include "passes/prove/run/explained.h"

#include <algorithm>
#include <iterator>
#include <new>

#include "passes/prove/run/run.h"

namespace mscclc::proof {

std::vector<Finding> explained(std::vector<Finding> findings, const Suspects& suspects,
                               const System& system, const LoopGroups& groups,
                               const Symbols& symbols, RunOptions options) {
  const auto wrong = [](const Finding& f) {
    return f.kind == Finding::Kind::wrong_value || f.kind == Finding::Kind::wrong_external ||
           f.kind == Finding::Kind::other_order;
  };
  const auto race = [](const Finding& f) {
    return f.kind == Finding::Kind::race || f.kind == Finding::Kind::slot_twice;
  };
  const bool races = std::ranges::any_of(findings, race);
  if (!races && !std::ranges::any_of(findings, wrong)) return findings;
  std::vector<Finding> others;  // results that hang on races say nothing
  std::ranges::copy_if(findings, std::back_inserter(others),
                       [&](const Finding& f) { return !wrong(f); });
  if (races && (system.joint() || !system.symmetry().trivial())) return others;
  try {
    options.traced = true;
    if (races) options.suspects = &suspects;
    std::vector<Finding> results;
    for (bool again = true; again;) {
      Run run(system, groups, symbols, options);
      run.go();
      std::ranges::copy_if(run.findings(), std::back_inserter(results), wrong);
      // Calls that take each other's packets do not end: then one call alone shows what it does.
      again = races && results.empty() && !run.finished() && options.calls > 1;
      options.calls = 1;
    }
    results.insert(results.end(), others.begin(), others.end());
    return results.empty() ? findings : results;
  } catch (const std::bad_alloc&) {
    return races ? others : findings;
  }
}

}  // namespace mscclc::proof
