// Which kernels there are. Each file kernel_<arithmetic>.cu instantiates those of one arithmetic,
// so that they are compiled side by side.
#pragma once

#include "executor/cuda/kernel.cuh"

namespace mscclc::cuda {

/// The kernel for plans that use no more than `uses`, or nullptr: none of this arithmetic does.
Kernel kernel_moves(uint32_t uses);
Kernel kernel_f32(uint32_t uses);
Kernel kernel_f16(uint32_t uses);
Kernel kernel_bf16(uint32_t uses);
/// Any type, everything.
Kernel kernel_any();

/// The smallest of an arithmetic's kernels that offers `uses`.
template <class Arithmetic, uint32_t kBase>
Kernel smallest_kernel(uint32_t uses) {
  if ((uses & ~kBase) == 0) return interpret<Arithmetic, kBase>;
  if ((uses & ~(kBase | device::kUsesLL)) == 0) {
    return interpret<Arithmetic, kBase | device::kUsesLL>;
  }
  if ((uses & ~(kBase | device::kUsesLL128)) == 0) {
    return interpret<Arithmetic, kBase | device::kUsesLL128>;
  }
  if ((uses & ~(kBase | device::kUsesSentinel)) == 0) {
    return interpret<Arithmetic, kBase | device::kUsesSentinel>;
  }
  return nullptr;
}

}  // namespace mscclc::cuda
