// Barriers of the author that order nothing: their blocks have just met, and none has done anything
// since.
#pragma once

#include <cstdint>

#include "ir/program/program.h"

namespace mscclc::order {

/// Takes out barriers of several blocks that stand right after another of the same blocks in each
/// of them, except syncs. Returns how many; they are
/// noted in the rank. REQUIRES: every op has a block.
uint64_t drop_repeated_barriers(Program& program, uint32_t rank);

}  // namespace mscclc::order
