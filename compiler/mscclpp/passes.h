// The passes of MSCCL++'s language over the ops of a thread block, and checks of a whole program.
#pragma once

#include "compiler/mscclpp/program.h"
#include "passes/fuse/fuse_rules.h"

namespace mscclc::mscclpp {

// What MSCCL++'s executor has room for in a thread block, and does not check.
inline constexpr size_t kMaxChannels = 16, kMaxRemotes = 16, kMaxOps = 64;
inline constexpr size_t kMaxReferences = 10;   ///< of an op, on each side
inline constexpr size_t kMaxDataChannels = 8;  ///< that an op that moves data names
inline constexpr size_t kMaxSemaphores = 16;   ///< of an op
inline constexpr size_t kMaxBarriers = 16;     ///< of a rank

/// Neighbours become one op, and syncs that say the same become one.
///
/// From left to right: an op absorbs the next one as long as a rule allows it. Where MSCCL++'s own
/// rules would change what a program computes, these do not: a stored sum goes to the chunk that
/// the broadcast names, and fusion ends where the executor's arrays do.
Ops fuse(Program& program, const Ops& ops);

/// What makes two ops of traces one; nullptr: nothing does.
const fusion::Rule* rule_of(OpKind left, OpKind right);

/// Each sync that an op asks for becomes a nop.
Ops write_out_syncs(const Ops& ops);

/// A nop before every op that touches what an op since the last nop has touched, one writing.
Ops add_syncs(const Program& program, const Ops& ops);

/// All passes that the program wants, on all blocks.
void run_passes(Program& program);

/// For every pair of ranks and kind of channel as many waits as signals.
Checked check_signals(const Program& program);
/// Ops there must be, and a plan has all thread blocks up to the last one, those without ops as
/// well.
Checked check_blocks(const Program& program);
/// What the executor has room for, after all passes.
Checked check_limits(const Program& program);
/// A sum over a switch must have become part of an op.
Checked check_sums(const Program& program);

}  // namespace mscclc::mscclpp
