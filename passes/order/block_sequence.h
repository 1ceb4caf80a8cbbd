// A rank's ops sorted by thread block, without moving them.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/program/program.h"
#include "ir/support/precondition.h"

namespace mscclc::order {

struct BlockSequence {
  std::vector<uint32_t> ops;       ///< indexes of ops: those of block 0 in order, of block 1 …
  std::vector<uint32_t> position;  ///< by op: where it stands in `ops`
  std::vector<uint32_t> begin;     ///< by block: where it begins in `ops`; and the end

  /// REQUIRES: every op has a block.
  void sort(const Rank& rank) {
    const uint32_t count = static_cast<uint32_t>(rank.ops.size());
    begin.assign(rank.blocks + 2, 0);
    for (const Op& op : rank.ops) {
      precondition(op.block < rank.blocks);
      ++begin[op.block + 2];
    }
    for (size_t b = 2; b < begin.size(); ++b) begin[b] += begin[b - 1];
    ops.resize(count);
    position.resize(count);
    for (uint32_t i = 0; i < count; ++i) {
      position[i] = begin[rank.ops[i].block + 1]++;
      ops[position[i]] = i;
    }
    begin.pop_back();  // the entry of block b + 1 has moved to the end of block b
  }
};

}  // namespace mscclc::order
