// LL128 lines in kernels written by hand. Eight lanes carry a line of 120 bytes: lane 7 has 8 bytes
// of data and the flag.
#pragma once

#include "tools/bench/kernels/handwritten.cuh"

namespace mscclc::bench {

inline constexpr uint32_t kLanes = 8;  // of a line
inline constexpr uint32_t kLineFloats = 30;

/// This lane's floats of a line: lanes 0 to 6 have four, lane 7 two and the flag.
struct LineLane {
  uint32_t index;
  __device__ bool has_flag() const { return index == kLanes - 1; }

  __device__ uint4 load(const float* share, uint64_t line, uint64_t floats, uint32_t flag) const {
    const uint64_t at = line * kLineFloats + index * 4;
    const float2 low = load_pair(share, at, floats);
    const float2 high = has_flag() ? float2{} : load_pair(share, at + 2, floats);
    uint4 v = {__float_as_uint(low.x), __float_as_uint(low.y), __float_as_uint(high.x),
               __float_as_uint(high.y)};
    return with_flag(v, flag);
  }
  __device__ uint4 with_flag(uint4 v, uint32_t flag) const {
    if (has_flag()) v.z = v.w = flag;
    return v;
  }
  __device__ void store(float* share, uint64_t line, uint64_t floats, uint4 v) const {
    const uint64_t at = line * kLineFloats + index * 4;
    store_pair(share, at, floats, {__uint_as_float(v.x), __uint_as_float(v.y)});
    if (has_flag()) return;
    store_pair(share, at + 2, floats, {__uint_as_float(v.z), __uint_as_float(v.w)});
  }
  __device__ bool ready(uint4 v, uint32_t flag) const {
    return !has_flag() || (v.z == flag && v.w == flag);
  }
};

/// All sources' lines, reloaded together until the flags of the whole warp's lines have come. A
/// line is stored by eight lanes at once and arrives whole, so its flag speaks for all of it.
template <uint32_t kRanks>
__device__ void await(const uint4* inbox, uint64_t row, uint32_t rank, LineLane lane, bool active,
                      uint32_t flag, uint4 (&got)[kRanks - 1]) {
  Patience patience;
  for (bool all = false; !all;) {
    bool ready = true;
    if (active) {
#pragma unroll
      for (uint32_t i = 1; i < kRanks; ++i) {
        got[i - 1] = load_now(inbox + (rank + i) % kRanks * row * kLanes);
      }
#pragma unroll
      for (uint32_t i = 0; i < kRanks - 1; ++i) ready &= lane.ready(got[i], flag);
    }
    all = __all_sync(0xffffffffu, ready);
    patience.wait(all);
  }
}

}  // namespace mscclc::bench
