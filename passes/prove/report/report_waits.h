// Findings about signals and rounds: what waits forever, and what is not given as often as taken.
#pragma once

#include "ir/diagnostics/diagnostic.h"
#include "passes/prove/model/finding.h"
#include "passes/prove/model/system.h"

namespace mscclc::proof {

/// Ranks that wait for each other forever, or leave a barrier too early, more that is given than
/// taken in a call, or less, and pipelines whose rounds do not pair, or cannot be done together.
void report_waits(const System& system, const Finding& finding, Diagnostics& diagnostics);
/// A flag that is not raised as often as it is declared.
void report_flag_count(const System& system, const Finding& finding, Diagnostics& diagnostics);

}  // namespace mscclc::proof
