#include "executor/cuda/kernels.cuh"

namespace mscclc::cuda {

Kernel kernel_f16(uint32_t uses) {
  return smallest_kernel<OneType<Dtype::f16>, device::kUsesSums>(uses);
}

}  // namespace mscclc::cuda
