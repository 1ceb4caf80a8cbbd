#include "executor/cuda/kernels.cuh"

namespace mscclc::cuda {

Kernel kernel_bf16(uint32_t uses) {
  return smallest_kernel<OneType<Dtype::bf16>, device::kUsesSums>(uses);
}

}  // namespace mscclc::cuda
