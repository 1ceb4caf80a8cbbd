// What the threads of a warp exchange without memory (executor/cuda/device/warp_access.cuh), for
// device code that is compiled for the host.
#pragma once

#include "executor/cuda/host/access.h"

namespace mscclc::cuda {

/// A place for each thread of a block.
struct WarpFloats {
  static constexpr uint32_t kMaxThreads = 1024;
  float of_thread[kMaxThreads];
};

/// Threads of the warp that have ended leave what they left.
inline float float_across(float x, uint32_t bit) {
  MSCCLC_SHARED(WarpFloats, floats);
  constexpr uint32_t kAll = 0xffffffffu;
  floats.of_thread[threadIdx.x] = x;
  __syncwarp(kAll);
  const float found = floats.of_thread[threadIdx.x ^ bit];
  __syncwarp(kAll);  // before the next exchange writes
  return found;
}

}  // namespace mscclc::cuda
