#include "executor/cuda/kernels.cuh"

namespace mscclc::cuda {

Kernel kernel_f32(uint32_t uses) {
  return smallest_kernel<OneType<Dtype::f32>, device::kUsesSums>(uses);
}

}  // namespace mscclc::cuda
