// Findings about results: what they hold, and in which order it was added up.
#pragma once

#include "ir/diagnostics/diagnostic.h"
#include "passes/prove/model/finding.h"
#include "passes/prove/model/system.h"

namespace mscclc::proof {

/// A chunk or an external that does not hold what is promised, or a sum that does not keep the
/// order of the contract.
void report_values(const System& system, const Finding& finding, Diagnostics& diagnostics);

}  // namespace mscclc::proof
