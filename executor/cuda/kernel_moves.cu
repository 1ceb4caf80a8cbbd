// Kernels for plans without reductions, of any type.
#include "executor/cuda/kernels.cuh"

namespace mscclc::cuda {

Kernel kernel_moves(uint32_t uses, uint32_t in_short) {
  return fast_kernel<NoSums>(uses, in_short);
}

}  // namespace mscclc::cuda
