// Makes the short program (interpreter/short_steps.h) of a launch, if it has one.
#pragma once

#include "executor/interpreter/short_steps.h"
#include "executor/launch.h"

namespace mscclc {

/// The short program of a launch whose `programs` are in the caller's memory. False: it has none.
/// Blocks may have other steps, wait for signals between them, run in rounds, or be cut unevenly.
[[nodiscard]] bool make_short(const device::LaunchPlan& launch, device::ShortProgram& made);

}  // namespace mscclc
