// The order of row reductions, for the threads of a block: pairs of neighbouring columns, then
// pairs of neighbouring pairs, and so on; what has no neighbour goes on alone. It depends on the
// number of columns and on nothing else. A thread has 2^k columns in a row and does the first k
// levels itself; threads do the rest, for any number of threads and any k.
//
// A block has: thread(), threads(), sync(), and shared(), a float for each of its threads. One of
// whole warps may have, besides, for the threads of a warp together: converge(), after which they
// run in step again (a warp runs those with columns and those without in turns); across(x, bit),
// the x of the thread whose number differs in that bit; share(warp, x), which puts their x, the
// same, at shared()[warp]; and take_turn(), after which shared() is another place, until it is
// called again. Then five levels need no memory, and all others together one meeting: who meets
// again has read what is overwritten next. Threads without a value have one that changes none.
#pragma once

#include <cstdint>

#include "executor/rows/row_math.h"

namespace mscclc::rows {

/// How many of its kChunk columns a thread has. A block that says how many threads it has
/// (kThreads) lets the compiler see that all have all.
template <uint32_t kChunk, class Block>
MSCCLC_RUN inline uint32_t present_columns(const Block& block, uint32_t columns) {
  if constexpr (requires { Block::kThreads; }) {
    if (columns == Block::kThreads * kChunk) return kChunk;
  }
  const uint32_t begin = block.thread() * kChunk, rest = begin < columns ? columns - begin : 0;
  return rest < kChunk ? rest : kChunk;
}

/// Has a thread with the first `present` of its kChunk columns none from the i-th on? Where chunks
/// divide the row it has all or none, which one comparison finds out.
template <uint32_t kChunk>
MSCCLC_RUN inline bool ends_at(uint32_t i, uint32_t present, uint32_t columns) {
  return columns % kChunk == 0 ? i == 0 && present == 0 : i >= present;
}
/// As many of its columns as levels inside the thread may add up: those of a thread without any do
/// not count, so that it takes part like the others.
template <uint32_t kChunk>
MSCCLC_RUN inline uint32_t folded_columns(uint32_t present, uint32_t columns) {
  return columns % kChunk == 0 ? kChunk : present;
}

/// Runs loop(divide) over a thread's columns, of a Row whose results may be stored again: quickly,
/// and only if that was not right by divisions that always are. Others are not divided quickly.
template <class Row, class Loop>
MSCCLC_RUN inline void divide_quickly(Loop loop) {
  if constexpr (requires { Row::kStoresAgain; }) {
    bool right = true;
    loop([&right](float x, float y) { return quick_quotient(x, y, right); });
    if (right) return;
  }
  loop([](float x, float y) { return div(x, y); });
}

/// The values of groups that a thread with kChunk columns has: of one group at least.
template <uint32_t kChunk, uint32_t kGroup>
inline constexpr uint32_t kGroupsOf = kChunk > kGroup ? kChunk / kGroup : 1;

/// Levels inside a thread: values[0], values[width], … become the reductions of `width` columns
/// each, a power of two. The thread has the first `present` values only.
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

/// reduce_threads() of a block with warps: in each warp, then of the warps, by every thread.
template <class Reduce, class Block>
MSCCLC_RUN inline float reduce_warps(Block& block, float mine, uint32_t width, uint32_t present) {
  const uint32_t thread = block.thread(), warp = thread / 32;
  block.converge();  // from now on all threads do the same
  if (present < block.threads() && thread >= present) mine = Reduce::none();
  MSCCLC_UNROLL
  for (uint32_t step = 1; step < 32; step *= 2) {
    if (step < width) mine = Reduce::of(mine, block.across(mine, step));
  }
  if (width <= 32) return mine;
  block.share(warp, mine);
  block.sync();
  const uint32_t group = width / 32, warps = (present + 31) / 32;
  const uint32_t first = width < block.threads() ? warp / group * group : 0;
  float of_warp[32];
  MSCCLC_UNROLL
  for (uint32_t i = 0; i < 32; ++i) {
    of_warp[i] = i < group && first + i < warps ? block.shared()[first + i] : Reduce::none();
  }
  fold<Reduce>(of_warp, group, 32);
  block.take_turn();  // the next reduction writes elsewhere
  return of_warp[0];
}

/// Levels between threads, of which the first `present` have a value each: each thread gets the
/// reduction of its `width` neighbours, a power of two. All threads of the block call it, 1024 at
/// most.
template <class Reduce, class Block>
MSCCLC_RUN inline float reduce_threads(Block& block, float mine, uint32_t width, uint32_t present) {
  if constexpr (requires { block.across(mine, width); }) {
    return reduce_warps<Reduce>(block, mine, width, present);
  } else {
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
}

/// The least power of two that is not below n.
MSCCLC_HD inline uint32_t width_for(uint32_t n) {
  uint32_t width = 1;
  while (width < n) width *= 2;
  return width;
}

}  // namespace mscclc::rows
