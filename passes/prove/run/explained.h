// Wrong results in words: the run that has found them is done again with a record of all sums.
#pragma once

#include <vector>

#include "passes/prove/loops/loop_groups.h"
#include "passes/prove/model/finding.h"
#include "passes/prove/model/system.h"
#include "passes/prove/model/values.h"
#include "passes/prove/processes/run_options.h"
#include "passes/prove/processes/suspects.h"

namespace mscclc::proof {

/// A run's findings, where wrong results are reported with what they hold: for that the plan is run
/// again with a record of all sums, unless that takes more memory than there is. Beside races only
/// those results are wrong that do not hang on them.
std::vector<Finding> explained(std::vector<Finding> findings, const Suspects& suspects,
                               const System& system, const LoopGroups& groups,
                               const Symbols& symbols, RunOptions options);

}  // namespace mscclc::proof
