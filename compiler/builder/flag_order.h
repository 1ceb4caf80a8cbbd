// Whether a plan goes through flags in the order in which the other side does.
#pragma once

#include "ir/diagnostics/diagnostic.h"
#include "ir/program/program.h"

namespace mscclc {

/// Warns of a thread block, or group, that awaits or notifies a flag after one that the other side
/// comes to later, as its array declares ('tiles'): once an array.
void warn_of_flag_order(const Program& program, Diagnostics& diagnostics);

}  // namespace mscclc
