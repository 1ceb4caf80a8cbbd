// How kernels of the benchmark copy: a few pieces under way at a time.
#pragma once

#include <cstdint>

namespace mscclc::bench {

inline constexpr uint32_t kInFlight = 4;  ///< pieces of a thread, loaded before the first is stored

/// A thread's part of `count` pieces: those at `first`, `first` + `stride` and so on.
template <class Piece>
__device__ inline void copy_pieces(Piece* to, const Piece* from, uint64_t count, uint64_t first,
                                   uint64_t stride) {
  uint64_t at = first;
  for (; at + (kInFlight - 1) * stride < count; at += kInFlight * stride) {
    Piece held[kInFlight];
#pragma unroll
    for (uint32_t i = 0; i < kInFlight; ++i) held[i] = from[at + i * stride];
#pragma unroll
    for (uint32_t i = 0; i < kInFlight; ++i) to[at + i * stride] = held[i];
  }
  for (; at < count; at += stride) to[at] = from[at];
}

}  // namespace mscclc::bench
