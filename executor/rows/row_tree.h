// The order of row reductions, for the threads of a block: pairs of neighbouring columns, then pairs of
// neighbouring pairs, and so on; what has no neighbour goes on alone. It depends on the number of
// columns and on nothing else. A thread has 2^k columns in a row and does the first k levels itself;
// threads do the rest, for any number of threads and any k.
//
// A block has: thread(), threads(), sync(), and shared(), a float for each of its threads.
#pragma once

#include <cstdint>

#include "executor/rows/row_math.h"

namespace mscclc::rows {

/// The values of groups that a thread with kChunk columns has: of one group at least.
template <uint32_t kChunk, uint32_t kGroup>
inline constexpr uint32_t kGroupsOf = kChunk > kGroup ? kChunk / kGroup : 1;

/// Levels inside a thread: values[0], values[width], … become the reductions of `width` columns each,
/// a power of two. The thread has the first `present` values only.
template <class Reduce, uint32_t kChunk>
MSCCLC_RUN inline void fold(float (&values)[kChunk], uint32_t width, uint32_t present) {
  MSCCLC_UNROLL
  for (uint32_t step = 1; step < kChunk; step *= 2) {
    if (step >= width) break;
    MSCCLC_UNROLL
    for (uint32_t i = 0; i + step < kChunk; i += 2 * step) {
      if (i + step < present) values[i] = Reduce::of(values[i], values[i + step]);
    }
  }
}

/// Levels between threads, of which the first `present` have a value each: each thread gets the
/// reduction of its `width` neighbours, a power of two. All threads of the block call it.
template <class Reduce, class Block>
MSCCLC_RUN inline float reduce_threads(Block& block, float mine, uint32_t width, uint32_t present) {
  float* const shared = block.shared();
  const uint32_t thread = block.thread();
  shared[thread] = mine;
  block.sync();
  for (uint32_t step = 1; step < width && step < present; step *= 2) {
    const uint32_t other = thread + step;
    if (thread % (2 * step) == 0 && other < present) {
      shared[thread] = Reduce::of(shared[thread], shared[other]);
    }
    block.sync();
  }
  const float result = shared[thread / width * width];
  block.sync();  // before the next reduction writes
  return result;
}

/// The least power of two that is not below n.
MSCCLC_HD inline uint32_t width_for(uint32_t n) {
  uint32_t width = 1;
  while (width < n) width *= 2;
  return width;
}

}  // namespace mscclc::rows
