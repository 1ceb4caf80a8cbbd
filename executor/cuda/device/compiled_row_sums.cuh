// Sums that a compiled kernel hands to a row function before they are stored: a thread adds up the
// columns that it has of a row, 16 bytes at a time, into the registers from which the function
// reads them, and sends what has become of them from there. In packets these bytes are a unit,
// which no other thread needs; lines (LL128) are not so.
#pragma once

#include <cstdint>

#include "executor/compiled_arguments.h"
#include "executor/cuda/device/packet_rows.cuh"

namespace mscclc::cuda {

/// Rows of packets that a thread polls together at most.
inline constexpr uint32_t kRowsPolled = 8;

/// Units of 16 bytes, as one thread handles them: so many rows of a slot.
template <PacketFormat F>
struct WholeUnits {
  static_assert(Format<F>::kData == 16);
  static constexpr uint32_t kRows = Format<F>::kRows;

  /// What rows hold that have come, as data_of() has it.
  __device__ __forceinline__ static uint4 data(const uint4* rows) {
    if constexpr (kRows == 1) return rows[0];
    return {rows[0].x, rows[0].y, rows[1].x, rows[1].y};
  }
  /// What goes into row `i`.
  __device__ __forceinline__ static uint4 part(const uint4& data, uint32_t i) {
    if constexpr (kRows == 1) return data;
    return i == 0 ? uint4{data.x, data.y, 0, 0} : uint4{data.z, data.w, 0, 0};
  }
  /// Where the unit is of data that begins `at` bytes after a run's beginning.
  __device__ __forceinline__ static uint64_t offset(uint64_t at) {
    return at / Format<F>::kData * Format<F>::kWire;
  }
};

/// A packet that has not come among the units that were polled together, nullptr: none; ends the
/// thread. By value, or they would lie in memory while they are polled.
template <PacketFormat F>
[[noreturn]] static __device__ __noinline__ void give_up_rows(WaitState& state, uint32_t op,
                                                              uint64_t stamp, const uint8_t* a,
                                                              const uint8_t* b, const uint8_t* c,
                                                              const uint8_t* d, const uint8_t* e,
                                                              const uint8_t* f, const uint8_t* g,
                                                              const uint8_t* h) {
  static_assert(kRowsPolled == 8);
  give_up(state, missing_packet<F>(op, stamp, 4, kRowsPolled, [&](uint32_t i) {
            const uint8_t* const first = i == 0 ? a : i == 1 ? b : i == 2 ? c : d;
            return i < 4 ? first : i == 4 ? e : i == 5 ? f : i == 6 ? g : h;
          }));
}

/// Which sources of a step of one move are packets.
template <class Operands>
struct PacketSources {
  __device__ static constexpr bool has(uint32_t source) {
    return (Operands::place(Operands::kDsts + source) & device::kPlacePackets) != 0;
  }
  /// How many there are among the first ones.
  __device__ static constexpr uint32_t among(uint32_t sources) {
    uint32_t packets = 0;
    for (uint32_t k = 0; k < sources; ++k) packets += has(k) ? 1 : 0;
    return packets;
  }
  /// The same of up to kAtOnce, without a loop, which the compiler would see through too late to
  /// keep in registers what is found by it.
  __device__ __forceinline__ static constexpr uint32_t before(uint32_t source) {
    static_assert(kAtOnce == 4);
    constexpr uint32_t kFirst = among(1), kSecond = among(Operands::kSrcs < 2 ? 1 : 2),
                       kThird = among(Operands::kSrcs < 3 ? Operands::kSrcs : 3);
    return source == 0 ? 0 : source == 1 ? kFirst : source == 2 ? kSecond : kThird;
  }
};

/// How many times 16 bytes of a thread's `vectors` are read together, if each is `each` loads.
__device__ constexpr uint32_t vectors_together(uint32_t vectors, uint32_t each) {
  uint32_t together = 1;
  while (2 * together <= vectors && 2 * together * each <= kRowsPolled) together *= 2;
  return together;
}

/// The columns that this thread has of one row of a sum: `present` of up to kVectors times 16
/// bytes, the first of them `at` bytes after the run's beginning. Block: a CompiledBlock, F the
/// format of the step's packets, none if it has none; Operands: the step's, of one move.
template <class Block, PacketFormat F, class Operands, uint32_t kVectors>
class SummedColumns {
 public:
  __device__ __forceinline__ SummedColumns(const Block& block, uint64_t at, uint32_t present)
      : block_(block), at_(at), present_(present) {}

  /// Adds up all sources, as a step without a row function does, divided by `by` and rounded.
  __device__ __forceinline__ void add_up(uint32_t by, uint32_t* words) const {
#pragma unroll
    for (uint32_t v = 0; v < kVectors; v += kTogether) {
      if (v < present_) add_some(v, by, words + v * 4);
    }
  }
  /// Stores words to all destinations.
  __device__ __forceinline__ void store(const uint32_t* words) const {
#pragma unroll
    for (uint32_t v = 0; v < kVectors; ++v) {
      if (v >= present_) continue;
      const uint32_t* const of = words + v * 4;
      const uint4 row = {of[0], of[1], of[2], of[3]};
#pragma unroll
      for (uint32_t k = 0; k < Operands::kDsts; ++k) store_one(Operands::place(k), v, row);
    }
  }

 private:
  using Units = WholeUnits<F>;
  using Packets = PacketSources<Operands>;
  static constexpr uint32_t kSources = Operands::kSrcs, kPackets = Packets::among(kSources);
  static_assert(Operands::kCount == 1);
  /// Are all sources read together? Then perhaps of several times 16 bytes.
  static constexpr bool kAll = kSources <= kAtOnce;
  static constexpr uint32_t kLoads =
      kPackets * Units::kRows > kSources ? kPackets* Units::kRows : kSources;
  static constexpr uint32_t kTogether = kAll ? vectors_together(kVectors, kLoads) : 1;

  /// What was read of all sources.
  struct Ready {
    const uint4* rows_of;
    __device__ __forceinline__ void operator()(uint32_t k, uint32_t n, uint4* rows) const {
#pragma unroll
      for (uint32_t j = 0; j < kAtOnce; ++j) {
        if (j < n) rows[j] = rows_of[k + j];
      }
    }
  };
  /// Reads those of sources k to k + n.
  struct Reads {
    const SummedColumns& of;
    uint32_t vector;
    __device__ __forceinline__ void operator()(uint32_t k, uint32_t n, uint4* rows) const {
      of.template read<1, kAtOnce>(vector, k, n, rows);
    }
  };

  __device__ __forceinline__ void add_some(uint32_t vector, uint32_t by, uint32_t* words) const {
    if constexpr (kAll) {
      uint4 rows[kTogether * kSources];
      read<kTogether, kSources>(vector, 0, kSources, rows);
#pragma unroll
      for (uint32_t i = 0; i < kTogether; ++i) {
        put(Block::template sum_of<Operands, true>(Ready{rows + i * kSources}, by), words + i * 4);
      }
    } else {
      put(Block::template sum_of<Operands, true>(Reads{*this, vector}, by), words);
    }
  }
  __device__ __forceinline__ static void put(const uint4& row, uint32_t* words) {
    words[0] = row.x, words[1] = row.y, words[2] = row.z, words[3] = row.w;
  }

  /// Reads sources k to k + n, kMax at most, of kMany times 16 bytes from `vector` on: rows of one
  /// vector follow one another, kMax apart from the next one's. Packets are polled in one loop,
  /// with loads of plain data under way; sentinels put back.
  template <uint32_t kMany, uint32_t kMax>
  __device__ __forceinline__ void read(uint32_t vector, uint32_t k, uint32_t n, uint4* rows) const {
    constexpr uint32_t kEach = kAll || kPackets == 0 ? kPackets : kMax;  // of a vector, in packets
    constexpr uint32_t kPolled = kMany * kEach * Units::kRows;
    using Polled = PacketRows<F, false, false, kPolled == 0 ? 1 : kPolled>;
    static_assert(kPolled <= kRowsPolled);
    typename Polled::Addresses from;
    from.packets = 0;
#pragma unroll
    for (uint32_t i = 0; i < kMany; ++i) {
#pragma unroll
      for (uint32_t j = 0; j < kMax; ++j) {
        if (j >= n) continue;
        const bool there = vector + i < present_;
        const uint8_t* const begin = block_.address(Operands::place(Operands::kDsts + k + j));
        if (!Packets::has(k + j)) {
          rows[i * kMax + j] = there ? load_as<uint4>(begin + at(vector + i)) : uint4{};
          continue;
        }
        const uint32_t first = slot<kEach>(i, k, j) * Units::kRows;
#pragma unroll
        for (uint32_t w = 0; w < Units::kRows; ++w) {
          from.at[first + w] = const_cast<uint8_t*>(begin) + Units::offset(at(vector + i)) + w * 16;
          from.packets |= uint32_t{there} << (first + w);
        }
      }
    }
    if constexpr (kPolled > 0) {
      uint4 polled[kPolled] = {};
      if (from.packets != 0) poll<Polled>(from, polled);
#pragma unroll
      for (uint32_t i = 0; i < kMany; ++i) {
#pragma unroll
        for (uint32_t j = 0; j < kMax; ++j) {
          if (j >= n || !Packets::has(k + j)) continue;
          rows[i * kMax + j] = Units::data(polled + slot<kEach>(i, k, j) * Units::kRows);
        }
      }
      Polled::empty(block_.stamp_, from);
    }
  }
  /// The place of a source among those that are polled.
  template <uint32_t kEach>
  __device__ __forceinline__ static constexpr uint32_t slot(uint32_t i, uint32_t k, uint32_t j) {
    return i * kEach + (kAll ? Packets::before(k + j) : j);
  }
  template <class Polled>
  __device__ __forceinline__ void poll(const typename Polled::Addresses& from, uint4* rows) const {
    constexpr uint32_t kMax = sizeof from.at / sizeof *from.at;
    Polled::poll(block_.state_.waits, block_.stamp_, from, {}, rows, [&] {
      const auto unit = [&](uint32_t i) -> const uint8_t* {
        const uint32_t row = i * Units::kRows;
        return row < kMax && from.holds_packets(row) ? from.at[row < kMax ? row : 0] : nullptr;
      };
      give_up_rows<F>(block_.state_.waits, block_.source_, Format<F>::stamp(block_.stamp_), unit(0),
                      unit(1), unit(2), unit(3), unit(4), unit(5), unit(6), unit(7));
    });
#pragma unroll
    for (uint32_t i = 0; i < kMax; ++i) rows[i] = Polled::data_of(rows[i]);
  }

  __device__ __forceinline__ void store_one(uint32_t place, uint32_t vector,
                                            const uint4& row) const {
    uint8_t* const begin = block_.address(place);
    if ((place & device::kPlacePackets) == 0) return store_as(begin + at(vector), row);
    using Sent = PacketRows<F, false, false, 1>;
    uint8_t* const slot = begin + Units::offset(at(vector));
#pragma unroll
    for (uint32_t w = 0; w < Units::kRows; ++w) {
      Sent::put(block_.stamp_, slot + w * 16, {}, Units::part(row, w));
    }
  }

  __device__ __forceinline__ uint64_t at(uint32_t vector) const { return at_ + vector * 16; }

  const Block& block_;
  const uint64_t at_;
  const uint32_t present_;
};

}  // namespace mscclc::cuda
