#include "executor/cuda/kernels.cuh"

namespace mscclc::cuda {

Kernel kernel_i32(uint32_t uses, uint32_t in_short) {
  return fast_kernel<OneType<Dtype::i32>>(uses, in_short);
}

}  // namespace mscclc::cuda
