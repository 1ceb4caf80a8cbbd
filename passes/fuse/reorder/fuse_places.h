// Where the ops of a rank run, as small numbers: every thread block is a place, and so is every
// group of blocks. Ops of one place follow each other in one thread of control.
#pragma once

#include <span>
#include <vector>

#include "ir/program/program.h"

namespace mscclc::fusion {

/// An op of a rank by its position in written order, from 1 on.
using Number = uint32_t;
inline constexpr Number kNoOp = 0;
inline constexpr size_t kKinds = kOpKinds;
using KindBits = uint64_t;  ///< kinds of op

class Places {
 public:
  explicit Places(const Program& program);
  void start(uint32_t rank);
  /// The op's place, or kNone.
  uint32_t of(Number op) const { return place_[op - 1]; }
  uint32_t count() const { return static_cast<uint32_t>(end_.size()); }
  /// How many blocks the rank has; places below that number are blocks.
  uint32_t blocks() const { return blocks_; }
  std::span<const uint32_t> blocks_of(uint32_t place) const {
    const uint32_t begin = place == 0 ? 0 : end_[place - 1];
    return {members_.data() + begin, end_[place] - begin};
  }

 private:
  uint32_t group_place(uint32_t group);

  const Program& program_;
  std::vector<uint32_t> alike_;  ///< by group: the first one of the same blocks
  uint32_t blocks_ = 0;
  std::vector<uint32_t> place_;          ///< by op
  std::vector<uint32_t> end_, members_;  ///< by place: its blocks
  std::vector<uint32_t> of_group_, seen_;
};

}  // namespace mscclc::fusion
