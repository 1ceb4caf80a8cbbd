// Findings about a call as a whole, at no op: counts that do not balance, barriers that do not
// hold.
#pragma once

#include "ir/diagnostics/diagnostic.h"
#include "passes/prove/model/finding.h"

namespace mscclc::proof {

/// A channel end or a semaphore that is not back at its count.
void report_unbalanced(const Program& program, const Finding& finding, Diagnostics& diagnostics);
/// A barrier that a rank may leave too early.
void report_not_met(const Finding& finding, Diagnostics& diagnostics);
/// A flag that is not raised as often as it is declared.
void report_flag_count(const Finding& finding, Diagnostics& diagnostics);

}  // namespace mscclc::proof
