// How a plan's compiled kernels run sums that are handed to row functions: in one step each, or,
// where that cannot be, as the sum, the function and what sends it on, one after the other.
#pragma once

#include <optional>
#include <string>

#include "executor/lower.h"

namespace mscclc {

/// Why the sums of a plan and their row functions are steps of their own in its kernels; nothing:
/// they are one step each, or there are none. All ranks and types alike.
std::optional<std::string> why_rows_apart(const Program& program);

/// What programs are lowered with whose calls such kernels run (lower.h). REQUIRES: program.split.
RowSteps compiled_row_steps(const Program& program);

}  // namespace mscclc
