// The CUDA machine that runs all plans: the threads of a thread block, 16 bytes each, by the bodies
// of all machines (interpreter/handlers_*.h).
#pragma once

#include <cstdint>

#include "executor/cuda/device/arithmetic.cuh"
#include "executor/cuda/device/block_base.cuh"
#include "executor/cuda/device/exact.cuh"
#include "executor/cuda/device/multimem.cuh"
#include "executor/cuda/device/packet_mark.cuh"
#include "executor/cuda/device/plain.cuh"
#include "executor/interpreter/steps.h"

namespace mscclc::cuda {

/// `kAddsTrees`: ops may add up as trees, or exactly, for which all threads of a device need more
/// memory.
template <class Arithmetic, bool kAddsTrees>
class CudaBlock : public BlockBase<Arithmetic, true> {
  using Base = BlockBase<Arithmetic, true>;
  using Base::arithmetic_;
  using Base::plan_;
  using Base::source_;
  using Base::stamp_;
  using Base::state_;

 public:
  using Base::Base;
  static constexpr uint32_t kTogether = 4;
  static constexpr bool kTrees = kAddsTrees;
  using Tile = cuda::Tile;
  using Sums = typename Arithmetic::Sums;

  /// The op's reduction.
  struct Arith {
    Arithmetic rows;
    ReduceOp reduce;
    uint32_t divisor;
    __device__ bool adds_exactly() const {
      return device::differs_if_exact(is_float(rows.dtype), reduce);
    }
    __device__ void start(Sums& sums, const Tile& tile, uint32_t payload) const {
      rows.start(sums, tile, payload);
    }
    __device__ void add(Sums& sums, const Tile& tile, uint32_t payload) const {
      rows.add(sums, tile, payload, reduce);
    }
    __device__ void finish(Sums& sums, Tile& tile, uint32_t payload) const {
      rows.finish(sums, tile, payload, divisor);
    }
  };

  __device__ Arith arith(const Step& step) const {
    return {arithmetic_, this->reduction(step), this->divisor(step)};
  }

  __device__ AnyTree tree_sums(const Arith& arith, uint32_t) const {
    return {arith.rows, arith.reduce, arith.divisor};
  }

  __device__ AnyExact exact_sums(const Arith& arith, uint32_t) const {
    return {arith.rows, arith.divisor};
  }

  template <PacketFormat F, class Fn>
  __device__ void for_each_piece(const device::StepStretch& s, Fn fn) {
    for_each_piece_of<F, Tile::kRows>(s, fn);
  }
  template <PacketFormat F, class Fn>
  __device__ void for_each_small_piece(const device::StepStretch& s, Fn fn) {
    for_each_piece_of<F, 1>(s, fn);
  }
  /// `kRows`: of a plain piece, at most.
  template <PacketFormat F, uint32_t kRows, class Fn>
  __device__ void for_each_piece_of(const device::StepStretch& s, Fn fn) {
    if constexpr (F == PacketFormat::none) {
      // Two rows at once, which are a whole step of the block apart, where both are full.
      const uint64_t step = row_step();
      for (uint64_t at = threadIdx.x * 16ull; at < s.count; at += step) {
        const uint32_t n = s.count - at < 16 ? static_cast<uint32_t>(s.count - at) : 16;
        Piece piece = device::piece_of<F>(s, s.skip + at, n);
        piece.payload = 16;
        if (kRows > 1 && at + step + 16 <= s.count) {
          piece.payload = 32;
          at += step;
        }
        fn(piece);
      }
    } else if constexpr (Format<F>::kLine) {
      // Several lanes to a line; the last has 8 bytes of data and the flag.
      constexpr uint32_t kLanes = Format<F>::kRows;
      for (uint64_t i = threadIdx.x; i < s.count * kLanes; i += blockDim.x) {
        fn(lane_of_line<F>(s, s.skip + i / kLanes, static_cast<uint32_t>(i % kLanes)));
      }
    } else {
      for (uint64_t i = threadIdx.x; i < s.count; i += blockDim.x) {
        fn(device::piece_of<F>(s, s.skip + i, 1));
      }
    }
  }

  /// Reads up to kTogether sources; all that are packets are polled in one loop.
  template <PacketFormat F>
  __device__ void fetch(const Source* sources, uint32_t n, const Piece& piece, Tile* tiles) {
#pragma unroll
    for (uint32_t i = 0; i < kTogether; ++i) {
      if (i >= n || sources[i].packets) continue;
      for_each_row(piece.payload, [&](uint32_t r) {
        tiles[i].rows[r] = load_piece(sources[i].address + r * row_step(), piece.bytes);
      });
    }
    if constexpr (F != PacketFormat::none) {
      await(
          state_.waits,
          [&] {
            bool all = true;
#pragma unroll
            for (uint32_t i = 0; i < kTogether; ++i) {
              if (i < n && sources[i].packets) {
                all &= take<F>(sources[i].address, piece, tiles[i]);
              }
            }
            return all;
          },
          [&] { return missing<F>(sources, n, piece); });
    }
  }
  __device__ void store(uint8_t* to, const Piece& piece, const Tile& tile) {
    for_each_row(piece.payload,
                 [&](uint32_t r) { store_piece(to + r * row_step(), piece.bytes, tile.rows[r]); });
  }
  template <PacketFormat F>
  __device__ void write_packets(uint8_t* slot, const Piece& piece, const Tile& tile);
  __device__ void empty_packets(uint8_t* unit, uint32_t) {
    const uint64_t empty[2] = {stamp_.sentinel, stamp_.sentinel};
    store_volatile16(unit, empty);
  }
  __device__ void drop_minus_zeros(Tile& tile, uint32_t) const {
    device::drop_minus_zeros(tile.bytes(), 16, this->element());
  }
  __device__ void copy(uint8_t* to, const uint8_t* from, uint64_t bytes) {
    copy_bytes(to, from, bytes);
  }

  template <class Rest>
  __device__ bool run_at_switch(const device::Steps& program, const Step& step, Rest rest) {
    const Arith sum = arith(step);
    return cuda::run_at_switch(*this, program, step,
                               {plan_.dtype, plan_.accumulate, sum.reduce, sum.divisor}, rest);
  }
  __device__ void post_put(uint32_t channel, uint8_t* to, const uint8_t* from, uint64_t bytes) {
    if (threadIdx.x != 0 || bytes == 0) return;
    this->post_move(PortWhat::put, channel, to, from, bytes);
  }

 private:
  /// Which of the sources has not come, and what its slot holds instead.
  template <PacketFormat F>
  __device__ Fault missing(const Source* sources, uint32_t n, const Piece& piece) const {
    const uint64_t stamp = Format<F>::stamp(stamp_);
    Fault fault{WaitFor::packet, 0, source_, 0, stamp, stamp};
    bool found = false;
#pragma unroll
    for (uint32_t i = 0; i < kTogether; ++i) {
      if (i >= n || !sources[i].packets || found) continue;
      found =
          blame<F>(fault, sources[i].address + piece.unit * Format<F>::kWire, stamp, stamp_.word);
    }
    return fault;
  }

  /// Bytes between the rows of a plain piece.
  __device__ static uint64_t row_step() { return blockDim.x * 16ull; }
  template <PacketFormat F>
  __device__ static Piece lane_of_line(const device::StepStretch& s, uint64_t unit, uint32_t lane) {
    Piece piece = device::piece_of<F>(s, unit, 1);
    const uint32_t at = lane * 16;
    piece.offset += at;
    piece.payload = lane < kLast<F> ? 16 : 8;
    const uint32_t left = piece.bytes > at ? piece.bytes - at : 0;
    piece.bytes = left < piece.payload ? left : piece.payload;
    piece.lane = lane;
    return piece;
  }
  /// The lane that has a line's flag.
  template <PacketFormat F>
  static constexpr uint32_t kLast = Format<F>::kRows - 1;
  template <PacketFormat F>
  __device__ bool take(const uint8_t* slot, const Piece& piece, Tile& tile) const;
  template <PacketFormat F>
  __device__ bool take_line(const uint8_t* slot, const Piece& piece, Tile& tile) const;
};

// A line's loads are one instruction, and all its lanes go by its flag, which the last of them
// holds. A lane that has given up votes no more, so that the others wait on, and give up too.
template <class A, bool kTrees>
template <PacketFormat F>
__device__ bool CudaBlock<A, kTrees>::take_line(const uint8_t* slot, const Piece& piece,
                                                Tile& tile) const {
  uint64_t words[2];
  uint4 row;
  __syncwarp(line_mask<F>());
  load_line_if(line_mask<F>(), true, slot + piece.unit * Format<F>::kWire + piece.lane * 16, row);
  memcpy(words, &row, sizeof row);
  const bool come = piece.lane != kLast<F> || words[1] == stamp_.flag64;
  if (piece.lane == kLast<F>) words[1] = 0;
  tile.set(words);
  return __ballot_sync(line_mask<F>(), come) == line_mask<F>();
}

template <class A, bool kTrees>
template <PacketFormat F>
__device__ bool CudaBlock<A, kTrees>::take(const uint8_t* slot, const Piece& piece,
                                           Tile& tile) const {
  if constexpr (Format<F>::kLine) {
    return take_line<F>(slot, piece, tile);
  } else if constexpr (Format<F>::kSentinel) {
    static_assert(Format<F>::kWire == 16);
    uint64_t words[2];
    load_volatile16(slot + piece.unit * 16, words);
    tile.set(words);
    if (stamp_.word == 8) return words[0] != stamp_.sentinel && words[1] != stamp_.sentinel;
    uint32_t quarters[4];
    memcpy(quarters, words, 16);
    const auto empty = static_cast<uint32_t>(stamp_.sentinel);
    return quarters[0] != empty && quarters[1] != empty && quarters[2] != empty &&
           quarters[3] != empty;
  } else {
    static_assert(Format<F>::kFlags);
    device::FlaggedUnit unit;
    uint64_t words[4];
    load_volatile16(slot + piece.unit * 32, words);
    load_volatile16(slot + piece.unit * 32 + 16, words + 2);
    memcpy(&unit, words, sizeof unit);
    unit.get(tile.bytes());
    return unit.ready(stamp_.flag32);
  }
}

template <class A, bool kTrees>
template <PacketFormat F>
__device__ void CudaBlock<A, kTrees>::write_packets(uint8_t* slot, const Piece& piece,
                                                    const Tile& tile) {
  if constexpr (Format<F>::kLine) {
    uint64_t words[2];
    tile.get(words);
    if (piece.lane == kLast<F>) words[1] = stamp_.flag64;
    uint4 row;
    memcpy(&row, words, sizeof row);
    store_line(line_mask<F>(), slot + piece.unit * Format<F>::kWire + piece.lane * 16, row);
  } else if constexpr (Format<F>::kSentinel) {
    static_assert(Format<F>::kWire == 16);
    uint64_t words[2];
    tile.get(words);
    store_volatile16(slot + piece.unit * 16, words);
  } else {
    static_assert(Format<F>::kFlags);
    device::FlaggedUnit unit;
    unit.set(tile.bytes(), stamp_.flag32);
    uint64_t words[4];
    memcpy(words, &unit, sizeof unit);
    uint8_t* to = slot + piece.unit * 32;
    if constexpr (Format<F>::kStore == 8) {
      for (uint32_t i = 0; i < 4; ++i) store_volatile8(to + 8 * i, words[i]);
    } else {
      store_volatile16(to, words);
      store_volatile16(to + 16, words + 2);
    }
  }
}

}  // namespace mscclc::cuda
