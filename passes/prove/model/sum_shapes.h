// The orders in which contracts have contributions added (docs/bits.md), as shapes of symbols.
#pragma once

#include <cstdint>
#include <span>

#include "passes/prove/model/values.h"

namespace mscclc::proof {

/// Shapes of the sum of several ranks' contributions.
struct SumShapes {
  uint64_t ranks = 0;  ///< from the left, in the order of the ranks
  uint64_t tree = 0;   ///< along the tree over them
  uint64_t exact = 0;  ///< all at once, exactly
};

/// REQUIRES: `ranks` are in ascending order, at least one.
SumShapes sum_shapes(const Symbols& symbols, std::span<const uint32_t> ranks);

}  // namespace mscclc::proof
