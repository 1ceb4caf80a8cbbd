#include "executor/cuda/kernels.cuh"

namespace mscclc::cuda {

Kernel kernel_bf16(uint32_t uses) { return fast_kernel<OneType<Dtype::bf16>>(uses); }

}  // namespace mscclc::cuda
