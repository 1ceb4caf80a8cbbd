// Which ranks the blocks that gave up were waiting for: the edges of the wait graph.
#pragma once

#include <set>

#include "executor/launch.h"
#include "ir/program.h"
#include "runtime/region.h"

namespace mscclc {

/// Adds the ranks that a rank's blocks waited for: peers whose signals did not come, writers of
/// packets. Waits inside the rank (semaphores, barriers, its proxy) add none. Arguments as of
/// describe_faults().
void add_awaited(const Program& program, uint32_t rank, const device::Fault* faults,
                 uint32_t blocks, const PeerMemory& region, std::set<uint32_t>& ranks);

}  // namespace mscclc
