#include "executor/cuda/kernels.cuh"

namespace mscclc::cuda {

Kernel kernel_f16(uint32_t uses) { return fast_kernel<OneType<Dtype::f16>>(uses); }

}  // namespace mscclc::cuda
