// Packets as a thread handles them: its part of a unit, which is one row of 16 bytes in a slot, and
// the same part in plain data.
#pragma once

#include <cstdint>

#include "executor/cuda/device/packet_mark.cuh"
#include "executor/cuda/device/plain_sums.cuh"
#include "executor/cuda/device/wait.cuh"

namespace mscclc::cuda {

/// Units of format `F`. `kUneven`: plain data begins at multiples of 4 bytes and ends anywhere,
/// else both at multiples of 16; `kTails`: it may end inside a word. `kMax`: operands at once.
template <PacketFormat F, bool kUneven, bool kTails, uint32_t kMax = kAtOnce>
struct PacketRows {
  static constexpr bool kLine = Format<F>::kLine;
  /// Data stands beside flags, half of a row.
  static constexpr bool kHalves = Format<F>::kFlags;
  static constexpr uint32_t kLanes = Format<F>::kRows;  ///< threads that share a unit
  static constexpr uint32_t kLast = kLanes - 1;         ///< the lane that has a line's flag
  static constexpr uint32_t kPart = kHalves ? 8 : 16;   ///< bytes of data in a row

  /// A thread's part of a unit.
  struct Part {
    uint32_t unit, lane;
    uint32_t bytes;   ///< how much of it is data
    uint64_t offset;  ///< in plain data
    uint32_t warp;    ///< lines: which threads of this one's warp have a part
  };

  /// Where a part lies in up to kMax operands.
  struct Addresses {
    uint8_t* at[kMax];
    uint32_t packets;  ///< bit j: operand j holds packets
    __device__ bool holds_packets(uint32_t j) const { return (packets >> j & 1) != 0; }
  };

  /// Row `i` of a run of units, for this thread, whose neighbours have the rows beside it. `end`:
  /// rows of the run up to where the block's share ends; `length`: bytes of data of the run.
  static __device__ __forceinline__ Part part_of(uint32_t i, uint32_t end, uint64_t length) {
    Part part;
    part.unit = i / kLanes;
    part.lane = i % kLanes;
    if constexpr (kLine) {
      const uint32_t left = end - i + threadIdx.x % 32;
      part.warp = left < 32 ? (1u << left) - 1 : 0xffffffffu;
    }
    part.offset = uint64_t{part.unit} * Format<F>::kData + part.lane * kPart;
    part.bytes = kLine && part.lane == kLast ? 8 : kPart;
    if (part.offset + part.bytes > length) {
      part.bytes = part.offset < length ? static_cast<uint32_t>(length - part.offset) : 0;
    }
    return part;
  }
  /// Calls fn with each part that this thread has of units [begin, end) of a run.
  template <class Fn>
  static __device__ __forceinline__ void for_each_part(uint32_t begin, uint32_t end,
                                                       uint64_t length, Fn fn) {
    const uint32_t rows = end * kLanes;
#pragma unroll 1
    for (uint32_t i = begin * kLanes + thread_of_block(); i < rows; i += threads_of_block()) {
      fn(part_of(i, rows, length));
    }
  }

  // A line has 120 bytes: every other one begins 8 bytes after a multiple of 16. Two accesses of
  // 8 bytes for all are faster than one of 16 for every other line.
  static __device__ uint4 load_part(const uint8_t* from, const Part& part) {
    if constexpr (kUneven) return load_words<kTails>(from, part.bytes);
    if constexpr (Format<F>::kSentinel) {
      return part.bytes == 16 ? load_as<uint4>(from) : uint4{};
    }
    uint2 low = {0, 0}, high = {0, 0};
    if (part.bytes >= 8) low = load_as<uint2>(from);
    if (kLine && part.bytes == 16) high = load_as<uint2>(from + 8);
    return {low.x, low.y, high.x, high.y};
  }
  static __device__ void store_part(uint8_t* to, const Part& part, const uint4& row) {
    if constexpr (kUneven) return store_words<kTails>(to, part.bytes, row);
    if constexpr (Format<F>::kSentinel) {
      if (part.bytes == 16) store_as(to, row);
      return;
    }
    if (part.bytes >= 8) store_as(to, uint2{row.x, row.y});
    if (kLine && part.bytes == 16) store_as(to + 8, uint2{row.z, row.w});
  }

  /// Loads a part of those of `n` operands that hold plain data; the other rows become zeros.
  static __device__ __forceinline__ void load_plain(const Addresses& from, uint32_t n,
                                                    const Part& part, uint4* rows) {
#pragma unroll
    for (uint32_t j = 0; j < kMax; ++j) {
      rows[j] = {};
      if (j < n && !from.holds_packets(j)) rows[j] = load_part(from.at[j], part);
    }
  }
  /// Reads a part of `n` sources; packets are polled in one loop. `meanwhile` is called while loads
  /// of plain data are under way and packets not yet waited for; `stop` as by poll().
  template <class Fn, class Stop>
  static __device__ __forceinline__ void read(WaitState& state, const Stamp& stamp,
                                              const Addresses& from, uint32_t n, const Part& part,
                                              uint4* rows, Fn meanwhile, Stop stop) {
    load_plain(from, n, part, rows);
    meanwhile();
    if (from.packets == 0) return;
    poll(state, stamp, from, part, rows, stop);
#pragma unroll
    for (uint32_t j = 0; j < kMax; ++j) {
      if (from.holds_packets(j)) rows[j] = data_of(rows[j]);
    }
  }
  /// Plain data that is moved beside sentinels loses its -0.0. Of `n` rows; bit j of `packets`: row
  /// j came as packets. `element`: bytes.
  static __device__ __forceinline__ void make_sendable(uint32_t packets, uint32_t n,
                                                       uint32_t element, uint4* rows) {
    if constexpr (Format<F>::kSentinel) {
#pragma unroll
      for (uint32_t j = 0; j < kMax; ++j) {
        if (j >= n || (packets >> j & 1) != 0) continue;
        rows[j] = drop_minus_zeros(rows[j], element);
      }
    }
  }

  /// Loads the rows that stand in the operands that hold packets; true if all have come. All are
  /// loaded before the first look at what came, without a branch, or each load would wait for the
  /// one ahead.
  static __device__ bool take(const Stamp& stamp, const Addresses& from, const Part& part,
                              uint4* rows) {
    uint32_t all = 1;
    if constexpr (kLine) __syncwarp(part.warp);  // a line's loads are one instruction
#pragma unroll
    for (uint32_t j = 0; j < kMax; ++j) {
      if constexpr (kLine) {
        load_line_if(part.warp, from.holds_packets(j), from.at[j], rows[j]);
      } else {
        load_packet_if(from.holds_packets(j), from.at[j], rows[j]);
      }
    }
#pragma unroll
    for (uint32_t j = 0; j < kMax; ++j) {
      all &= static_cast<uint32_t>(!from.holds_packets(j)) | has_come(stamp, rows[j], part);
    }
    // The flags are in one lane. One that has given up votes no more: the others wait on, and give
    // up too.
    if constexpr (kLine) return __ballot_sync(part.warp, all) == part.warp;
    return all != 0;
  }
  /// Waits for the rows in the operands that hold packets. Where one does not come, stop() ends the
  /// thread; threads that share lines stop together.
  template <class Stop>
  static __device__ __forceinline__ void poll(WaitState& state, const Stamp& stamp,
                                              const Addresses& from, const Part& part, uint4* rows,
                                              Stop stop) {
    poll_until(
        state, kLine ? part.warp : 0, [&] { return take(stamp, from, part, rows); }, stop);
  }
  static __device__ uint32_t has_come(const Stamp& stamp, const uint4& row, const Part& part) {
    if constexpr (kHalves) {
      return static_cast<uint32_t>(row.y == stamp.flag32) &
             static_cast<uint32_t>(row.w == stamp.flag32);
    } else if constexpr (kLine) {
      return static_cast<uint32_t>(part.lane != kLast) |
             (static_cast<uint32_t>(row.z == static_cast<uint32_t>(stamp.flag64)) &
              static_cast<uint32_t>(row.w == static_cast<uint32_t>(stamp.flag64 >> 32)));
    } else {
      static_assert(Format<F>::kSentinel);
      const auto empty = static_cast<uint32_t>(stamp.sentinel);
      return static_cast<uint32_t>(row.x != empty) & static_cast<uint32_t>(row.y != empty) &
             static_cast<uint32_t>(row.z != empty) & static_cast<uint32_t>(row.w != empty);
    }
  }
  /// The data of a row that has come, from its beginning on.
  static __device__ uint4 data_of(const uint4& row) {
    if constexpr (kHalves) return {row.x, row.z, 0, 0};
    return row;
  }
  static __device__ void put(const Stamp& stamp, uint8_t* slot, const Part& part, uint4 row) {
    if constexpr (kHalves) {
      row = {row.x, stamp.flag32, row.y, stamp.flag32};
    } else if constexpr (kLine) {
      if (part.lane == kLast) {
        row.z = static_cast<uint32_t>(stamp.flag64);
        row.w = static_cast<uint32_t>(stamp.flag64 >> 32);
      }
      return store_line(part.warp, slot, row);
    }
    if constexpr (Format<F>::kStore == 8) {
      store_volatile8(slot, uint64_t{row.y} << 32 | row.x);
      store_volatile8(slot + 8, uint64_t{row.w} << 32 | row.z);
    } else {
      store_packet(slot, row);
    }
  }
  static __device__ uint64_t slot_offset(const Part& part) {
    return uint64_t{part.unit} * Format<F>::kWire + part.lane * 16;
  }

  /// Puts sentinels back into slots that were read. Peers may already have been sent what was made
  /// of them: no packet says that a slot is empty, which is why two calls need two copies of it.
  static __device__ void empty(const Stamp& stamp, const Addresses& from) {
    if constexpr (Format<F>::kSentinel) {
      const auto word = static_cast<uint32_t>(stamp.sentinel);
#pragma unroll
      for (uint32_t j = 0; j < kMax; ++j) {
        if (from.holds_packets(j)) store_packet(from.at[j], {word, word, word, word});
      }
    }
  }

  /// Writes a row to the first `n` of the operands. `from`: where it lies if it is only moved; a
  /// step of packets may hold a copy, in place onto itself, which is no access (ir/ops/parts.h).
  static __device__ void write(const Stamp& stamp, const Addresses& to, uint32_t n,
                               const Part& part, const uint4& row, const uint8_t* from = nullptr) {
#pragma unroll
    for (uint32_t j = 0; j < kMax; ++j) {
      if (j < n) write_one(stamp, to, j, part, row, from);
    }
  }
  static __device__ void write_one(const Stamp& stamp, const Addresses& to, uint32_t j,
                                   const Part& part, const uint4& row,
                                   const uint8_t* from = nullptr) {
    if (to.holds_packets(j)) {
      put(stamp, to.at[j], part, row);
    } else if (to.at[j] != from) {
      store_part(to.at[j], part, row);
    }
  }
};

}  // namespace mscclc::cuda
