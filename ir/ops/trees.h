// Reductions that are trees. The sources x0 ... x(n - 1) of an op, in written order, give T(0, n):
// T(a, a + 1) is xa, and T(a, b) is T(a, a + p) and T(a + p, b) together, where p is the largest
// power of two below b - a. So the trees of 1, 2, 4, 8, ... sources are parts of one another. All
// of it is done in the accumulation type; only the end is rounded to the data type.
#pragma once

#include <cstdint>

#include "ir/ops/summations.h"

namespace mscclc {

/// Machines keep the results of parts, which takes room: so many sources, at most.
inline constexpr uint32_t kMaxTreeSources = info(Summation::tree).most_sources;
/// A tree of no more is what adding up one source after the other gives.
inline constexpr uint32_t kMaxTreeInLine = info(Summation::tree).most_in_line;

/// The largest power of two below `n`. REQUIRES: n > 1.
constexpr uint32_t first_of_tree(uint32_t n) {
  uint32_t p = 1;
  while (2 * p < n) p *= 2;
  return p;
}

}  // namespace mscclc
