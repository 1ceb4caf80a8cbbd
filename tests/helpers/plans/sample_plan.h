// For tests: a small program in which nearly everything that a plan can say occurs.
#pragma once

#include "ir/program/program.h"

namespace mscclc::testing {

/// Two ranks, three thread blocks, memory, port and switch channels, packets, a pipeline, a barrier
/// and a group. Split and right in structure.
Program sample_plan();

}  // namespace mscclc::testing
