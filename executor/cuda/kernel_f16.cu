#include "executor/cuda/kernels.cuh"

namespace mscclc::cuda {

Kernel kernel_f16(uint32_t uses, uint32_t in_short) {
  return fast_kernel<OneType<Dtype::f16>>(uses, in_short);
}

}  // namespace mscclc::cuda
