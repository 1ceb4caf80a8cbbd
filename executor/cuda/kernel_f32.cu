#include "executor/cuda/kernels.cuh"

namespace mscclc::cuda {

Kernel kernel_f32(uint32_t uses) { return fast_kernel<OneType<Dtype::f32>>(uses); }

}  // namespace mscclc::cuda
