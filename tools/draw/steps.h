// The rows of a picture: ops of a block in steps (what it waits for, one op that moves data, what
// it signals then), and at which level each step can run first.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/draw/flow.h"

namespace mscclc::draw {

/// Consecutive ops of one block. Syncs are in no step.
struct Step {
  std::vector<uint32_t> ops;  ///< in order: waits, at most one op with data, signals
  uint32_t data = kNone;      ///< the op that moves data
  uint32_t loop = kNone;
  uint32_t level = 0;  ///< no step that it waits for has this level or a higher one
};

/// A thread block (or group) of a rank.
struct Block {
  uint32_t rank = 0;
  int64_t place = 0;
  uint32_t first = 0, count = 0;  ///< its steps
};

/// All steps of a program.
struct Steps {
  std::vector<Step> steps;
  std::vector<Block> blocks;                 ///< by rank, then by place
  std::vector<uint32_t> first_block;         ///< of each rank, and the end
  std::vector<std::vector<uint32_t>> of_op;  ///< [rank][op]: its step, or kNone
  std::vector<uint32_t> block_of;            ///< of each step

  /// The step of an op; kNone for a sync.
  uint32_t at(OpRef op) const { return of_op[op.rank][op.op]; }
};

/// Cuts blocks into steps, and levels them by `flows`. Where these go in a circle (a program that
/// hangs), some step is taken first all the same.
Steps make_steps(const Program& program, const std::vector<Flow>& flows);

}  // namespace mscclc::draw
