// The kernel that runs everything but trees and exact sums.
#include "executor/cuda/device/block.cuh"
#include "executor/cuda/kernels.cuh"

namespace mscclc::cuda {

Kernel kernel_any() {
  constexpr uint32_t kThreads = device::kFewThreads;
  return {interpret<CudaBlock<AnyType, false>, kThreads>, kThreads};
}

}  // namespace mscclc::cuda
