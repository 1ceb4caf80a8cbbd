// The device's side of clocks.h. In builds without stamps nothing is left of it.
#pragma once

#include "executor/cuda/device/clocks.h"

namespace mscclc::cuda {

#ifdef MSCCLC_CLOCKS

/// Of a block, in shared memory; its first thread's alone.
struct BlockClock {
  uint64_t* row;  ///< nullptr: no stamps
  uint64_t began;
  uint32_t stamps;

  __device__ void begin_clock(uint64_t* rows) {
    if (threadIdx.x != 0) return;
    row = rows != nullptr && blockIdx.x < kMostClockBlocks ? rows + blockIdx.x * kClockWords
                                                           : nullptr;
    began = static_cast<uint64_t>(clock64());
    stamps = 0;
  }
  __device__ void stamp_clock(uint32_t what) {
    if (threadIdx.x != 0 || row == nullptr || stamps + 1 == kClockWords) return;
    row[++stamps] = uint64_t{what} << kClockShift | (static_cast<uint64_t>(clock64()) - began);
    row[0] = stamps;
  }
};

#else

struct BlockClock {
  __device__ static void begin_clock(uint64_t*) {}
  __device__ static void stamp_clock(uint32_t) {}
};

#endif

}  // namespace mscclc::cuda
