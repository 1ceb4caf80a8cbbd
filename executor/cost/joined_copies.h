// Copies that take no step of their own (executor/copies_beside.h), by op. Where an op becomes
// several steps, as its moves are not alike, it is taken to be beside no copy.
#pragma once

#include <cstdint>
#include <vector>

#include "executor/lower.h"

namespace mscclc::cost {

/// Which copies of a rank are part of another step, by index among its ops.
class JoinedCopies {
 public:
  static constexpr uint32_t kNoOp = 0xffffffffu;

  /// REQUIRES: the rank is fitted.
  explicit JoinedCopies(const RankProgram& rank);

  /// The copy that an op does, too, or kNoOp.
  uint32_t copy_of(uint32_t op) const { return copies_[op]; }
  /// Is an op such a copy?
  bool is_joined(uint32_t op) const { return joined_[op]; }

 private:
  void join(uint32_t copy, uint32_t step);

  std::vector<uint32_t> copies_;  ///< by op
  std::vector<bool> joined_;      ///< by op
};

}  // namespace mscclc::cost
