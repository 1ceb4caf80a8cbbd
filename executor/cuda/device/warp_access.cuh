// What the threads of a warp exchange without memory. All 32 call these together.
#pragma once

#ifdef MSCCLC_ON_HOST
#include "executor/cuda/host/warp_access.h"
#else

#include <cstdint>

namespace mscclc::cuda {

/// The `x` of one thread of the warp.
__device__ __forceinline__ float float_of_lane(float x, uint32_t lane) {
  return __shfl_sync(0xffffffffu, x, static_cast<int>(lane));
}
/// The `x` of the thread that is so much further; beyond the last, of this one.
__device__ __forceinline__ float float_further(float x, uint32_t step) {
  return __shfl_down_sync(0xffffffffu, x, step);
}

}  // namespace mscclc::cuda
#endif
