#include "executor/cuda/kernels.cuh"

namespace mscclc::cuda {

Kernel kernel_e4m3(uint32_t uses) { return fast_kernel<OneType<Dtype::e4m3>>(uses); }

}  // namespace mscclc::cuda
