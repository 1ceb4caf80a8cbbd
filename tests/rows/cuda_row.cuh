// What emitted row functions are given on a GPU, to see that their source compiles there: a block,
// and a row of buffers in device memory, a block for each row.
#pragma once

#include "executor/rows/row_tree.h"
#include "executor/rows/row_values.h"

namespace mscclc::rows {

class CudaBlock {
 public:
  __device__ explicit CudaBlock(float* shared) : shared_(shared) {}
  __device__ uint32_t thread() const { return threadIdx.x; }
  __device__ uint32_t threads() const { return blockDim.x; }
  /// Warps meet there: half of what is for threads is more than enough.
  __device__ float* shared() const { return shared_ + turn_ * kHalf; }
  __device__ void share(uint32_t warp, float x) const {
    if (threadIdx.x % 32 == 0) shared()[warp] = x;
  }
  __device__ void take_turn() { turn_ ^= 1; }
  __device__ void sync() const { __syncthreads(); }
  __device__ void converge() const { __syncwarp(); }
  __device__ float across(float x, uint32_t bit) const {
    return __shfl_xor_sync(0xffffffff, x, static_cast<int>(bit));
  }

 private:
  static constexpr uint32_t kHalf = 512;  ///< floats
  float* shared_;
  uint32_t turn_ = 0;
};

/// Buffers, and how many of their values belong to a row: 0 for those that all rows share.
struct CudaRow {
  static constexpr uint32_t kMax = 16;
  void* buffers[2][kMax];
  uint32_t pitches[2][kMax];

  template <uint32_t k, class Element>
  __device__ float load(uint32_t i) const {
    const auto* all = static_cast<const typename Element::Bits*>(buffers[0][k]);
    return load_as<Element>(all[static_cast<uint64_t>(blockIdx.x) * pitches[0][k] + i]);
  }
  template <uint32_t k, class Element>
  __device__ void store(uint32_t i, float value) const {
    auto* all = static_cast<typename Element::Bits*>(buffers[1][k]);
    all[static_cast<uint64_t>(blockIdx.x) * pitches[1][k] + i] = store_as<Element>(value);
  }
};

}  // namespace mscclc::rows
