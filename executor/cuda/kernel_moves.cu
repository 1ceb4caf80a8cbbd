// Kernels for plans without reductions, of any type.
#include "executor/cuda/kernels.cuh"

namespace mscclc::cuda {

Kernel kernel_moves(uint32_t uses) { return fast_kernel<NoSums>(uses); }

}  // namespace mscclc::cuda
