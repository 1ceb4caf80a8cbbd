#include "executor/cuda/kernels.cuh"

namespace mscclc::cuda {

Kernel kernel_i32(uint32_t uses) { return fast_kernel<OneType<Dtype::i32>>(uses); }

}  // namespace mscclc::cuda
