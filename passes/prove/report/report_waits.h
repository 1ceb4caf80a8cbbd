// Findings about signals and rounds: what waits forever, and what is not given as often as taken.
#pragma once

#include "ir/diagnostics/diagnostic.h"
#include "passes/prove/model/finding.h"
#include "passes/prove/model/system.h"

namespace mscclc::proof {

/// Ranks wait for each other forever.
void report_stuck(const System& system, const Finding& finding, Diagnostics& diagnostics);
/// More is given than taken in a call, or less.
void report_unbalanced(const System& system, const Finding& finding, Diagnostics& diagnostics);
/// A rank may leave a barrier too early.
void report_not_met(const System& system, const Finding& finding, Diagnostics& diagnostics);
/// Rounds of pipelines that do not pair.
void report_unpaired(const System& system, const Finding& finding, Diagnostics& diagnostics);
/// Pipelines that cannot do their rounds together.
void report_out_of_step(const System& system, const Finding& finding, Diagnostics& diagnostics);
/// A flag that is not raised as often as it is declared.
void report_flag_count(const Finding& finding, Diagnostics& diagnostics);

}  // namespace mscclc::proof
