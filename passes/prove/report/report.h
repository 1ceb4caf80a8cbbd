// Findings in words: what is violated, on which chunk and ranks, by which ops, and what is missing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/diagnostics/diagnostic.h"
#include "passes/prove/model/finding.h"
#include "passes/prove/model/system.h"
#include "passes/prove/model/unordered.h"

namespace mscclc::proof {

/// Of races, slots that are used twice, and other findings, the first kind that there is: the
/// others mostly follow from it. Wrong results stay: `explained()` has left only those that do not;
/// those that are wrong in the same way are one finding, as they mostly have one cause.
std::vector<Finding> causes(const std::vector<Finding>& findings);

/// The plan is too large to be proved here: reported with where most of its ops come from.
void report_no_memory(const Program& program, Diagnostics& diagnostics);
/// A set of plans is.
void report_no_memory(Diagnostics& diagnostics);

void report(const System& system, const Finding& finding, Diagnostics& diagnostics);

/// The ops that a finding is between, or the only one; nothing if it is about none. Of a joint
/// program: as that has them.
std::optional<Unordered> unordered(const System& system, const Finding& finding);

}  // namespace mscclc::proof
