// Places ops without a place where they remain one sequence: in one block, in the blocks that serve
// their channels, or, in pipelines, in a block for each stage, with semaphores that hand on.
#pragma once

#include "ir/diagnostics/diagnostic.h"
#include "ir/program/program.h"

namespace mscclc::assign {

/// Gives every op a place. Blocks after the author's are used as far as `most_blocks` (0: any
/// number) allows. False if the blocks that serve an op's channels cannot share its work.
bool place_sequences(Program& program, uint32_t most_blocks, Diagnostics& diagnostics);

}  // namespace mscclc::assign
