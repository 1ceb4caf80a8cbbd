#include "executor/cuda/kernels.cuh"

namespace mscclc::cuda {

Kernel kernel_e5m2(uint32_t uses) { return fast_kernel<OneType<Dtype::e5m2>>(uses); }

}  // namespace mscclc::cuda
