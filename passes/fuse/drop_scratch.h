// Scratch that nothing touches any more once ops are fused: the sum that a row function takes
// before it is stored, the copy that a put has read from. It would be memory of every communicator
// that loads the plan.
#pragma once

#include <cstdint>

#include "ir/program/program.h"

namespace mscclc {

/// Takes out the scratch buffers that no op of any rank touches, and numbers the others anew.
/// Returns how many there were, of all ranks. What stays lies alike at ranks where it did: a buffer
/// goes at all ranks that have one of its name, or at none.
///
/// Nothing is taken from programs that share scratch with other plans (`launch reuse_scratch`:
/// chunk lies on chunk only where all declare the same), from plans of MSCCL++, nor from programs
/// with a switch, where scratch must lie alike, whose ranks do not all declare the same.
uint32_t drop_untouched_scratch(Program& program);

}  // namespace mscclc
