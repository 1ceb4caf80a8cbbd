// Where a unit of packets says that it has come: for those that wait, and for those that report.
#pragma once

#include <cstdint>

#include "executor/cuda/device/access.cuh"
#include "executor/cuda/device/plain.cuh"
#include "executor/interpreter/packets.h"

namespace mscclc::cuda {

using device::Stamp;
using device::Unit;

/// The eight lanes of a warp that share a line with this one.
__device__ inline uint32_t line_mask() { return 0xffu << (threadIdx.x & 24u); }

/// Where a unit of packets says whether it has come, and what stands there.
struct Mark {
  uint64_t expected, seen;
  bool missing;
};

/// The first mark of a unit that says that it has not come, else the last one. `word`: Stamp::word.
template <PacketFormat F>
static __device__ __noinline__ Mark missing_mark(const uint8_t* unit, uint64_t stamp,
                                                 uint32_t word) {
  constexpr bool kLine = F == PacketFormat::LL128, kSentinel = F == PacketFormat::sentinel;
  const uint32_t step = kLine ? 128 : kSentinel ? word : 8;
  const bool wide = kLine || (kSentinel && word == 8);
  Mark mark{wide ? stamp : static_cast<uint32_t>(stamp), 0, false};
  for (uint32_t i = kLine ? 120 : kSentinel ? 0 : 4; i < Unit<F>::kWire; i += step) {
    mark.seen =
        wide ? load_relaxed(at<uint64_t>(unit + i, 0)) : load_relaxed(at<uint32_t>(unit + i, 0));
    mark.missing = (mark.seen == mark.expected) == kSentinel;
    if (mark.missing) break;
  }
  return mark;
}

}  // namespace mscclc::cuda
