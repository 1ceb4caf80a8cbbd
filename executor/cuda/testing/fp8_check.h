// Tries the GPU's conversions of fp8 (fp8.cuh) on everything that can be converted.
#pragma once

#include <cstdint>

#include "ir/ops/ops.h"

namespace mscclc::cuda {

/// How many conversions gave other bits than interpreter/numbers.h, and one of them.
struct Differences {
  uint64_t floats = 0;  ///< of all 2^32
  uint64_t codes = 0;   ///< of all 256, at each place of a word
  uint32_t example = 0;
};

/// REQUIRES: e4m3 or e5m2, and a GPU. Returns what CUDA said (cudaError_t).
int compare_conversions(Dtype dtype, Differences& found);

}  // namespace mscclc::cuda
