// What the threads of a warp exchange without memory. All 32 call these together.
#pragma once

#ifdef MSCCLC_ON_HOST
#include "executor/cuda/host/warp_access.h"
#else

#include <cstdint>

namespace mscclc::cuda {

/// The `x` of the thread whose lane differs in this bit.
__device__ __forceinline__ float float_across(float x, uint32_t bit) {
  return __shfl_xor_sync(0xffffffffu, x, static_cast<int>(bit));
}

}  // namespace mscclc::cuda
#endif
