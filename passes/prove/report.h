// Findings in words: what is violated, on which chunk and ranks, by which ops, and what is missing.
#pragma once

#include <vector>

#include "ir/diagnostic.h"
#include "passes/prove/finding.h"
#include "passes/prove/system.h"

namespace mscclc::proof {

/// Of races, slots that are used twice, and other findings, the first kind that there is: the
/// others mostly follow from it.
std::vector<Finding> causes(const std::vector<Finding>& findings);

void report(const System& system, const Finding& finding, Diagnostics& diagnostics);

}  // namespace mscclc::proof
