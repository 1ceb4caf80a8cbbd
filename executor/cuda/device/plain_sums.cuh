// Sums of plain data, by all threads of a block: in rows of 16 bytes, or in words where the
// operands do not lie alike.
#pragma once

#include <cstdint>

#include "executor/cuda/device/plain.cuh"
#include "executor/cuda/device/shared_program.cuh"

namespace mscclc::cuda {

inline constexpr uint32_t kAtOnce = 4;  ///< sources read, and waited for, together

template <class Arithmetic>
__device__ inline void add_to(typename Arithmetic::RowSums& sums, const uint4& row, bool first) {
  if (first) {
    Arithmetic::start(sums, row);
  } else {
    Arithmetic::add(sums, row);
  }
}

/// Calls fn(row, first) with a row of each of the sources from `begin` to `end`, in written order.
/// read(k, n, rows) reads those of sources k to k + n, and is called for all, up to kAtOnce at a
/// time. `kUnroll`: how many such times stand in the code one after the other. Where sources are
/// lines of a program, begin at the line: from 0 on kernels take more registers, and spill.
template <uint32_t kUnroll, class Read, class Fn>
__device__ __forceinline__ void for_each_source(uint32_t begin, uint32_t end, const Read& read,
                                                const Fn& fn) {
#pragma unroll(kUnroll)
  for (uint32_t k = begin; k < end; k += kAtOnce) {
    const uint32_t left = end - k, n = left < kAtOnce ? left : kAtOnce;
    uint4 rows[kAtOnce];
    read(k, n, rows);
#pragma unroll
    for (uint32_t j = 0; j < kAtOnce; ++j) {
      if (k + j < end) fn(rows[j], k + j == begin);
    }
  }
}
/// `kUnroll` for so many sources, known when this is compiled: all of them.
constexpr uint32_t unroll_of(uint32_t sources) { return (sources + kAtOnce - 1) / kAtOnce + 1; }

/// Adds up a row of each of these sources, one after the other.
template <class Arithmetic, uint32_t kUnroll, class Read>
__device__ __forceinline__ void add_up(typename Arithmetic::RowSums& sums, uint32_t begin,
                                       uint32_t end, const Read& read) {
  for_each_source<kUnroll>(begin, end, read, [&](const uint4& row, bool first) {
    add_to<Arithmetic>(sums, row, first);
  });
}

/// Where a thread loads and stores what it adds up: 16 bytes, in an operand that begins at `base`.
struct WholeRow {
  uint64_t at;
  __device__ uint4 load(const uint8_t* base) const { return load_as<uint4>(base + at); }
  __device__ void store(uint8_t* base, const uint4& row) const { store_as(base + at, row); }
};

/// Four words at multiples of 4 that are `apart`: threads side by side access words side by side.
/// `kTails`: not all data are whole words.
template <bool kTails>
struct ApartWords {
  uint64_t at;
  uint32_t left, apart;  ///< bytes from the first word on
  __device__ uint32_t bytes(uint32_t i) const { return left > i * apart ? left - i * apart : 0; }
  __device__ uint4 load(const uint8_t* base) const {
    uint32_t words[4];
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i) words[i] = load_word<kTails>(base + at + i * apart, bytes(i));
    return {words[0], words[1], words[2], words[3]};
  }
  __device__ void store(uint8_t* base, const uint4& row) const {
    const uint32_t words[] = {row.x, row.y, row.z, row.w};
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i) store_word<kTails>(base + at + i * apart, bytes(i), words[i]);
  }
};

/// A move that adds up plain data.
struct PlainSum {
  uint32_t line, sources, end;  ///< lines of its operands
  uint32_t divisor, call;

  // One row of four sources at a time: with 1024 threads enough loads are in flight, and registers
  // are not.
  template <class Arithmetic, class Row>
  __device__ void add_row(const Row& where) const {
    typename Arithmetic::RowSums sums;
    add_up<Arithmetic, 1>(sums, sources, end, [&](uint32_t k, uint32_t, uint4* rows) {
#pragma unroll
      for (uint32_t j = 0; j < kAtOnce; ++j) {
        if (k + j < end) rows[j] = where.load(shared_operand(k + j, call).address);
      }
    });
    const uint4 row = Arithmetic::finish(sums, divisor);
#pragma unroll 1
    for (uint32_t k = line; k < sources; ++k) where.store(shared_operand(k, call).address, row);
  }
};

/// Adds up [begin, end) of a move by all threads: rows where operands lie alike, words at the ends
/// or, where they do not, everywhere.
template <class Arithmetic>
__device__ inline void add_uneven(const PlainSum& sum, uint64_t begin, uint64_t end) {
  const StepHeader& header = shared_header();
  uint64_t rows = begin, rows_end = begin;
  if (header.row_line >= 16) {
    const uint64_t head =
        (0u - static_cast<uint32_t>(begin) - header.row_shift) & (header.row_line - 1);
    rows = head < end - begin ? begin + head : end;
    rows_end = end - ((end - rows) & 15);
  }
  const uint32_t block = blockDim.x * 16;
#pragma unroll 1
  for (uint64_t at = rows + threadIdx.x * 16; at < rows_end; at += block) {
    sum.add_row<Arithmetic>(WholeRow{at});
  }
  // The two ends by two warps.
#pragma unroll 1
  for (uint32_t side = 0; side < 2; ++side) {
    const uint64_t last = side == 0 ? rows : end;
    const uint32_t thread = side == 0 ? threadIdx.x : blockDim.x - 1 - threadIdx.x;
#pragma unroll 1
    for (uint64_t at = (side == 0 ? begin : rows_end) + thread * 4; at < last; at += block) {
      const uint32_t left = last - at < block ? static_cast<uint32_t>(last - at) : block;
      constexpr bool kTails = Arithmetic::kLeastElement < 4;
      sum.add_row<Arithmetic>(ApartWords<kTails>{at, left, block / 4});
    }
  }
}

}  // namespace mscclc::cuda
