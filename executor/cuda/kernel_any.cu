// The kernel that runs everything. Its handlers are called, not inlined: it has them all.
#define MSCCLC_CALL_BODIES
#include "executor/cuda/kernels.cuh"

namespace mscclc::cuda {

Kernel kernel_any() { return interpret<AnyType, device::kUsesAll>; }

}  // namespace mscclc::cuda
