// The kernel that runs everything, also reductions as trees, and exact ones.
#include "executor/cuda/device/block.cuh"
#include "executor/cuda/kernels.cuh"

namespace mscclc::cuda {

Kernel kernel_trees() {
  constexpr uint32_t kThreads = device::kFewThreads;
  return {interpret<CudaBlock<AnyType, true>, kThreads>, kThreads};
}

}  // namespace mscclc::cuda
