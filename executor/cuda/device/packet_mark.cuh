// Where a unit of packets says that it has come: for those that wait, and for those that report.
#pragma once

#include <cstdint>

#include "executor/cuda/device/access.cuh"
#include "executor/cuda/device/plain.cuh"
#include "executor/interpreter/packets.h"
#include "executor/launch.h"

namespace mscclc::cuda {

using device::Format;
using device::FoundMark;
using device::Stamp;

/// The lanes of a warp that share a line with this one.
template <PacketFormat F>
__device__ inline uint32_t line_mask() {
  constexpr uint32_t kRows = Format<F>::kRows;
  static_assert(kRows <= 16 && 32 % kRows == 0);
  return ((1u << kRows) - 1) << (threadIdx.x & (32 - kRows));
}

/// The first mark of a unit that says that it has not come, else the last one. `word`: Stamp::word.
template <PacketFormat F>
static __device__ __noinline__ FoundMark missing_mark(const uint8_t* unit, uint64_t stamp,
                                                      uint32_t word) {
  return device::find_missing_mark<F>(stamp, word, [unit](uint32_t i, bool wide) -> uint64_t {
    return wide ? load_relaxed(at<uint64_t>(unit + i, 0)) : load_relaxed(at<uint32_t>(unit + i, 0));
  });
}

/// Makes `fault` say which unit has not come, and what it holds instead. False: it has come, after
/// all; another may not have.
template <PacketFormat F>
__device__ inline bool blame(device::Fault& fault, const uint8_t* unit, uint64_t stamp,
                             uint32_t word) {
  const FoundMark mark = missing_mark<F>(unit, stamp, word);
  const auto address = reinterpret_cast<uint64_t>(unit);
  fault.index = static_cast<uint32_t>(address);
  fault.high = static_cast<uint32_t>(address >> 32);
  fault.expected = mark.expected;
  fault.seen = mark.seen;
  return mark.missing;
}

/// What to report of op `op` where packets of some of `n` units have not come. unit(i): where unit
/// i is; nullptr: it holds no packets.
template <PacketFormat F, class Unit>
__device__ __forceinline__ device::Fault missing_packet(uint32_t op, uint64_t stamp, uint32_t word,
                                                        uint32_t n, Unit unit) {
  device::Fault fault{device::WaitFor::packet, 0, op, 0, stamp, stamp};
  for (uint32_t i = 0; i < n; ++i) {
    const uint8_t* const at = unit(i);
    if (at != nullptr && blame<F>(fault, at, stamp, word)) break;
  }
  return fault;
}

}  // namespace mscclc::cuda
