// What the blocks of a rank that gave up have waited for, in the words of the plan's author.
#pragma once

#include <set>

#include "executor/launch.h"
#include "ir/diagnostics/diagnostic.h"
#include "ir/program/program.h"
#include "runtime/core/device/region.h"

namespace mscclc {

/// Whether blocks of a rank have given up, or had nothing to do since a call was given up.
bool have_given_up(const device::Fault* faults, uint32_t blocks);

/// Notes about the blocks of a rank that have given up a wait: the op as written and where, the
/// channel and its peer, what was expected and what was seen. Reads memory that blocks may still
/// write. `region`: the rank's own. Returns how many there are; adds notes of the first few, and to
/// `awaited` the other ranks that should have sent what any of them waited for.
size_t describe_faults(const Program& program, uint32_t rank, const device::Fault* faults,
                       uint32_t blocks, const PeerMemory& region, std::vector<Note>& notes,
                       std::set<uint32_t>& awaited);

}  // namespace mscclc
