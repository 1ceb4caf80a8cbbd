// Which kernels there are. Each file kernel_<arithmetic>.cu instantiates those of one arithmetic (a
// data type of fast_dtypes.def, or none), so that they are compiled side by side.
#pragma once

#include "executor/cuda/device/fast.cuh"
#include "executor/cuda/kernel.cuh"
#include "executor/kernel_threads.h"

namespace mscclc::cuda {

/// The kernel for plans that use no more than `uses`, or none of this arithmetic does: no function.
/// Sums are sum or avg. `in_short`: for the short programs of such plans; 0, or the operands that a
/// step has on one side, at most.
Kernel kernel_moves(uint32_t uses, uint32_t in_short);
#define FAST_DTYPE(name) Kernel kernel_##name(uint32_t uses, uint32_t in_short);
#include "executor/cuda/fast_dtypes.def"
#undef FAST_DTYPE
/// Any type, everything but trees and exact sums.
Kernel kernel_any();
/// Everything. One of its own, as the sums of parts of a tree, and exact ones, take registers and a
/// thread's memory.
Kernel kernel_trees();

template <class Arithmetic, PacketFormat F, bool kUneven, bool kHasPorts = has_ports(F)>
Kernel fast_kernel_of() {
  constexpr uint32_t kThreads = device::threads_for(F);
  return {interpret_shared<FastBlock<Arithmetic, F, kUneven, kHasPorts>, kThreads>, kThreads};
}

template <class Arithmetic, bool kUneven>
Kernel fast_kernel_for(uint32_t formats) {
  switch (formats) {
    case 0:
      return fast_kernel_of<Arithmetic, PacketFormat::none, kUneven>();
    case device::kUsesProxy:
      return fast_kernel_of<Arithmetic, PacketFormat::none, kUneven, true>();
#define FORMAT(name, ...)                   \
  case device::uses_of(PacketFormat::name): \
    return fast_kernel_of<Arithmetic, PacketFormat::name, kUneven>();
#include "ir/ops/formats.def"
#undef FORMAT
    default:
      return {};
  }
}

template <class Arithmetic, PacketFormat F>
Kernel short_kernel_of(uint32_t operands) {
  if (operands <= 2) {
    return {interpret_short<ShortBlock<Arithmetic, F, 2, false>>, kMaxShortThreads, true,
            interpret_short<ShortBlock<Arithmetic, F, 2, true>>};
  }
  // Never early (runtime/devices/cuda/device.cc).
  return {interpret_short<ShortBlock<Arithmetic, F, device::kShortOperands, false>>,
          kMaxShortThreads, true};
}

/// The kernel for short programs whose steps have no more than `operands` on one side.
template <class Arithmetic>
Kernel short_kernel(uint32_t uses, uint32_t operands) {
  switch (uses & ~uint32_t{device::kUsesSums}) {
#define FORMAT(name, ...)                   \
  case device::uses_of(PacketFormat::name): \
    return short_kernel_of<Arithmetic, PacketFormat::name>(operands);
#include "ir/ops/formats.def"
#undef FORMAT
    default:
      return {};
  }
}

/// The kernel of an arithmetic that offers `uses`: there is one for each packet format, for none,
/// and for none with ports; each also for plain data at multiples of 4 bytes. Those of some formats
/// have ports, whether they are used or not.
template <class Arithmetic>
Kernel fast_kernel(uint32_t uses, uint32_t in_short) {
  if (in_short != 0) return short_kernel<Arithmetic>(uses, in_short);
  uint32_t formats = uses & ~uint32_t{device::kUsesSums | device::kUsesUneven};
  if ((formats & kFormatsWithPorts) != 0) formats &= ~uint32_t{device::kUsesProxy};
  return (uses & device::kUsesUneven) != 0 ? fast_kernel_for<Arithmetic, true>(formats)
                                           : fast_kernel_for<Arithmetic, false>(formats);
}

}  // namespace mscclc::cuda
