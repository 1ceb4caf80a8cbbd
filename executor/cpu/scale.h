// Scaling by a machine on a CPU.
#pragma once

#include "executor/interpreter/scaling.h"

namespace mscclc {

/// Multiplies `count` elements of a float type. `to` may be `from`, and overlaps it in no other
/// way.
void scale(Dtype dtype, void* to, const void* from, uint64_t count, double factor);

}  // namespace mscclc
