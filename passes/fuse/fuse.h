// fuse: neighbouring ops become one. On GPUs every op saved is worth about half a microsecond, so
// ops that serve all peers at once are the point:
//
//   put ch[1].inbox[0] <- input[0]
//   put ch[2].inbox[0] <- input[0]       =>  put ch[1].inbox[0], ch[2].inbox[0] <- input[0],
//   input[0]
//
//   reduce output[0] <- input[0], inbox[1]
//   put ch[1].output[0] <- output[0]     =>  reduce_send output[0], ch[1].output[0]
//                                                          <- input[0], inbox[1]
//
// Which ops, and what becomes of them: the rules of fuse_rule_table.cc. They need not stand side by
// side: fuse_order.h says what one may be moved past. Values that others may still look at are
// kept; only scratch that no rank reads is done without (drop_scratch.h takes it out of the plan).
// All source locations are kept.
//
// Runs after `assign`, as only ops of one place can be one op, and before
//  - `groups`: ops of a group fuse as one; cut in parts, with barriers between, they would not;
//  - `replicate`: instances are copies of what has been fused, not fused one by one;
//  - `sync`: a sync between two ops that become one would be in the way, and not needed.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/ops/op_limits.h"
#include "ir/program/program.h"

namespace mscclc {

struct FuseStats {
  uint64_t before = 0, after = 0;  ///< ops
  std::vector<uint64_t> fired;     ///< by row of the table of rules (fuse_rules.h)
  uint64_t tried = 0;              ///< pairs of ops
  void add(const std::vector<uint64_t>& more_fired, uint64_t more_tried);
};

/// Fuses the ops of all ranks, whatever `launch fuse` says. No op grows beyond the limits; those
/// that exceed them already stay as they are (fit.cc has cut what could be cut).
/// `threads`: see thread_count (ir/program/rank_parts.h); the result is the same.
FuseStats fuse_ops(Program& program, const OpLimits& limits = {}, uint32_t threads = 0);

}  // namespace mscclc
