#include "executor/cuda/kernels.cuh"

namespace mscclc::cuda {

Kernel kernel_e4m3(uint32_t uses, uint32_t in_short) {
  return fast_kernel<OneType<Dtype::e4m3>>(uses, in_short);
}

}  // namespace mscclc::cuda
