// When the launch after a call may begin, while blocks of the call still run (programmatic
// dependent launch; executor/cuda/device/ahead.cuh).
//
// Blocks of a launch that has begun hold their place on the GPU. If different streams' calls fill
// different GPUs, they deadlock: none ends that has blocks yet to begin elsewhere.
// So a block lets the next launch begin only once it knows that all blocks that its launch depends
// on, on any rank, have begun: what they still do needs no more room anywhere, and streams order
// calls as if the next one had been launched when this one ended.
//
// A block knows that another has begun when it has taken a packet, or a signal of this call, that
// only that one sends. What the launch depends on follows from the plan: which blocks wait for
// which, directly or through others. Where a plan cannot show it (ops of switches, signals that
// several blocks send), blocks let the next launch begin by ending.
#pragma once

#include <cstdint>

#include "executor/lower.h"

namespace mscclc {

/// Marks the ops of a lowered rank after which its blocks let the next launch begin
/// (device::kFreesNext), and those whose packets they know it by (device::kShowsPeers).
/// REQUIRES: `lowered` is rank `rank` of `program`.
void mark_early_launch(const Program& program, uint32_t rank, RankProgram& lowered);

}  // namespace mscclc
