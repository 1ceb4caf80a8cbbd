#include "executor/cuda/kernels.cuh"

namespace mscclc::cuda {

Kernel kernel_e5m2(uint32_t uses, uint32_t in_short) {
  return fast_kernel<OneType<Dtype::e5m2>>(uses, in_short);
}

}  // namespace mscclc::cuda
