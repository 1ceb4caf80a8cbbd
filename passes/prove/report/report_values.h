// Findings about results: what they hold, and in which order it was added up.
#pragma once

#include "ir/diagnostics/diagnostic.h"
#include "passes/prove/model/finding.h"
#include "passes/prove/model/system.h"

namespace mscclc::proof {

/// A chunk does not hold what is promised.
void report_wrong_value(const System& system, const Finding& finding, Diagnostics& diagnostics);
/// Nor does an external.
void report_wrong_external(const System& system, const Finding& finding, Diagnostics& diagnostics);
/// A sum that does not keep the order of the contract.
void report_other_order(const System& system, const Finding& finding, Diagnostics& diagnostics);

}  // namespace mscclc::proof
