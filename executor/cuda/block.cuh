// The CUDA machine: the threads of a thread block, 16 bytes each (interpreter/machine.h says what a
// machine offers). Arithmetic is a parameter: one data type, or whichever the call names.
//
// Every wait has an end: after `patience` clock cycles a block records a fault and all waits of the
// launch give up, so that the kernel ends and the host can say who waited.
#pragma once

#include <cstdint>

#include "executor/cuda/access.cuh"
#include "executor/cuda/arithmetic.cuh"
#include "executor/cuda/launch.h"
#include "executor/interpreter/machine.h"

namespace mscclc::cuda {

using device::Piece;
using device::Source;
using device::Stretch;
using device::Unit;

template <class Arithmetic>
class CudaBlock {
 public:
  static constexpr uint32_t kTogether = 4;
  using Tile = cuda::Tile;
  using Sums = typename Arithmetic::Sums;

  /// The op's reduction.
  struct Arith {
    Arithmetic rows;
    ReduceOp reduce;
    uint32_t divisor;
    __device__ void start(Sums& sums, const Tile& tile, uint32_t) const { rows.start(sums, tile); }
    __device__ void add(Sums& sums, const Tile& tile, uint32_t) const {
      rows.add(sums, tile, reduce);
    }
    __device__ void finish(Sums& sums, Tile& tile, uint32_t) const {
      rows.finish(sums, tile, divisor);
    }
  };

  __device__ CudaBlock(const RankContext& rank, const LaunchPlan& plan, uint32_t block)
      : rank_(rank),
        plan_(plan),
        block_(block),
        call_(load_relaxed(rank.call)),
        arithmetic_{plan.dtype},
        stamp_(device::stamp_of(call_, arithmetic_.element())) {}

  __device__ void enter(const device::DeviceOp& op) { op_ = &op; }
  __device__ uint8_t* base(uint32_t index) const {
    const BaseAddress& b = rank_.bases[index];
    return b.copies > 1 ? b.address + call_ % b.copies * b.copy_stride : b.address;
  }
  __device__ uint32_t element() const { return arithmetic_.element(); }
  __device__ Arith arith(const device::DeviceOp& op) const {
    const ReduceOp reduce = op.reduce == ReduceOp::call ? plan_.reduce : op.reduce;
    const bool divides = reduce == ReduceOp::avg && (op.flags & device::kComplete) != 0;
    return {arithmetic_, reduce, divides ? plan_.contributions : 1};
  }

  template <PacketFormat F, class Fn>
  __device__ void for_each_piece(const Stretch& s, Fn fn) {
    if constexpr (F == PacketFormat::none) {
      for (uint64_t at = threadIdx.x * 16ull; at < s.count; at += blockDim.x * 16ull) {
        const uint32_t n = s.count - at < 16 ? static_cast<uint32_t>(s.count - at) : 16;
        fn(device::piece_of<F>(s, s.skip + at, n));
      }
    } else if constexpr (F == PacketFormat::LL128) {
      // Eight lanes to a line; the last has 8 bytes of data and the flag.
      for (uint64_t i = threadIdx.x; i < s.count * 8; i += blockDim.x) {
        fn(lane_of_line(s, s.skip + i / 8, static_cast<uint32_t>(i % 8)));
      }
    } else {
      for (uint64_t i = threadIdx.x; i < s.count; i += blockDim.x) {
        fn(device::piece_of<F>(s, s.skip + i, 1));
      }
    }
  }

  template <class Fn>
  __device__ void for_each_target(uint32_t n, Fn fn) {
    for (uint32_t i = threadIdx.x; i < n; i += blockDim.x) fn(i);
  }

  /// Reads up to kTogether sources; all that are packets are polled in one loop.
  template <PacketFormat F>
  __device__ void fetch(const Source* sources, uint32_t n, const Piece& piece, Tile* tiles) {
    Patience patience(*this);
    for (bool all = false; !all && patience.lasts();) {
      all = true;
#pragma unroll
      for (uint32_t i = 0; i < kTogether; ++i) {
        if (i >= n) break;
        if constexpr (F == PacketFormat::none) {
          load_bytes(sources[i].address, piece.bytes, tiles[i].bytes);
        } else if (sources[i].packets) {
          all &= take<F>(sources[i].address, piece, tiles[i]);
        } else {
          load_bytes(sources[i].address, piece.bytes, tiles[i].bytes);
        }
      }
    }
  }
  __device__ void store(uint8_t* to, const Piece& piece, const Tile& tile) {
    store_bytes(to, piece.bytes, tile.bytes);
  }
  template <PacketFormat F>
  __device__ void write_packets(uint8_t* slot, const Piece& piece, const Tile& tile);
  __device__ void empty_packets(uint8_t* slot, const Piece& piece) {
    const uint64_t empty[2] = {stamp_.sentinel, stamp_.sentinel};
    store_volatile16(slot + piece.unit * 16, empty);
  }
  __device__ void drop_minus_zeros(Tile& tile, uint32_t) const {
    device::drop_minus_zeros(tile.bytes, sizeof tile.bytes, element());
  }
  __device__ void copy(uint8_t* to, const uint8_t* from, uint64_t bytes) {
    copy_bytes(to, from, bytes);
  }

  __device__ void signal(uint32_t channel, bool relaxed) {
    unsigned long long* arrived = rank_.channels[channel].partner;
    if (arrived == nullptr) return;
    if (relaxed) {
      add_relaxed(arrived);
    } else {
      add_release(arrived);
    }
  }
  __device__ void wait(uint32_t channel, bool) {
    DeviceChannelEnd& end = rank_.channels[channel];
    Patience patience(*this);
    while (load_acquire(end.arrived) <= end.taken && patience.lasts()) {
    }
    ++end.taken;
  }
  __device__ void flush(uint32_t) {}  // puts over ports have been done when post_put returns
  __device__ void release(uint32_t semaphore) { add_release(&rank_.semaphores[semaphore]); }
  __device__ void acquire(uint32_t semaphore) {
    unsigned long long* count = &rank_.semaphores[semaphore];
    Patience patience(*this);
    while (patience.lasts()) {
      const unsigned long long seen = load_acquire(count);
      if (seen > 0 && atomicCAS(count, seen, seen - 1) == seen) break;
    }
    __threadfence();
  }
  __device__ void meet(uint32_t barrier) {
    Barrier& b = rank_.barriers[barrier];
    __syncthreads();
    if (threadIdx.x == 0) {
      __threadfence();
      const unsigned long long mine = atomicAdd(&b.arrived, 1ull);
      const unsigned long long full = (mine / b.members + 1) * b.members;
      Patience patience(*this);
      while (load_acquire(&b.arrived) < full && patience.lasts()) {
      }
    }
    __syncthreads();
  }
  __device__ void sync() { __syncthreads(); }
  /// One device: the block is its own proxy, and does at once what a proxy may do later.
  __device__ void post_put(uint32_t, uint8_t* to, const uint8_t* from, uint64_t bytes) {
    __syncthreads();
    copy_bytes(to, from, bytes);
    __syncthreads();
  }

 private:
  /// Counts polls; looks at the clock and at others' faults only now and then.
  class Patience {
   public:
    __device__ explicit Patience(const CudaBlock& block) : block_(block) {}
    __device__ bool lasts() {
      if ((++polls_ & 4095) != 0) return true;
      if (polls_ == 4096) start_ = clock64();
      if (load_relaxed(&block_.rank_.fault->happened) != 0) return false;
      if (static_cast<uint64_t>(clock64() - start_) < block_.plan_.patience) return true;
      block_.give_up();
      return false;
    }

   private:
    const CudaBlock& block_;
    uint32_t polls_ = 0;
    long long start_ = 0;
  };

  __device__ void give_up() const {
    Fault* fault = rank_.fault;
    if (atomicCAS(&fault->happened, 0u, 1u) != 0) return;
    fault->rank = rank_.rank;
    fault->block = block_;
    fault->op = op_->source;
  }
  __device__ static Piece lane_of_line(const Stretch& s, uint64_t unit, uint32_t lane) {
    Piece piece = device::piece_of<PacketFormat::LL128>(s, unit, 1);
    const uint32_t at = lane * 16;
    piece.offset += at;
    piece.payload = lane < 7 ? 16 : 8;
    const uint32_t left = piece.bytes > at ? piece.bytes - at : 0;
    piece.bytes = left < piece.payload ? left : piece.payload;
    piece.lane = lane;
    return piece;
  }
  template <PacketFormat F>
  __device__ bool take(const uint8_t* slot, const Piece& piece, Tile& tile) const;
  __device__ bool take_line(const uint8_t* slot, const Piece& piece, Tile& tile) const;

  const RankContext& rank_;
  const LaunchPlan& plan_;
  const uint32_t block_;
  const uint64_t call_;
  const Arithmetic arithmetic_;
  const device::Stamp stamp_;
  const device::DeviceOp* op_ = nullptr;
};

/// The eight lanes of a warp that share a line with this one.
__device__ inline uint32_t line_mask() { return 0xffu << (threadIdx.x & 24u); }

// A line's eight loads are one instruction, and all eight lanes go by its flag.
template <class A>
__device__ bool CudaBlock<A>::take_line(const uint8_t* slot, const Piece& piece, Tile& tile) const {
  uint64_t words[2];
  __syncwarp(line_mask());
  load_volatile16(slot + piece.unit * 128 + piece.lane * 16, words);
  const uint64_t flag = __shfl_sync(line_mask(), words[1], 7, 8);
  if (piece.lane == 7) words[1] = 0;
  memcpy(tile.bytes, words, 16);
  return flag == stamp_.flag64;
}

template <class A>
template <PacketFormat F>
__device__ bool CudaBlock<A>::take(const uint8_t* slot, const Piece& piece, Tile& tile) const {
  if constexpr (F == PacketFormat::LL128) {
    return take_line(slot, piece, tile);
  } else if constexpr (F == PacketFormat::sentinel) {
    uint64_t words[2];
    load_volatile16(slot + piece.unit * 16, words);
    memcpy(tile.bytes, words, 16);
    if (stamp_.word == 8) return words[0] != stamp_.sentinel && words[1] != stamp_.sentinel;
    uint32_t quarters[4];
    memcpy(quarters, words, 16);
    const auto empty = static_cast<uint32_t>(stamp_.sentinel);
    return quarters[0] != empty && quarters[1] != empty && quarters[2] != empty &&
           quarters[3] != empty;
  } else {
    device::FlaggedUnit unit;
    uint64_t words[4];
    load_volatile16(slot + piece.unit * 32, words);
    load_volatile16(slot + piece.unit * 32 + 16, words + 2);
    memcpy(&unit, words, sizeof unit);
    unit.get(tile.bytes);
    return unit.ready(stamp_.flag32);
  }
}

template <class A>
template <PacketFormat F>
__device__ void CudaBlock<A>::write_packets(uint8_t* slot, const Piece& piece, const Tile& tile) {
  if constexpr (F == PacketFormat::LL128) {
    uint64_t words[2];
    memcpy(words, tile.bytes, 16);
    if (piece.lane == 7) words[1] = stamp_.flag64;
    __syncwarp(line_mask());  // a line's eight stores are one instruction
    store_volatile16(slot + piece.unit * 128 + piece.lane * 16, words);
  } else if constexpr (F == PacketFormat::sentinel) {
    uint64_t words[2];
    memcpy(words, tile.bytes, 16);
    store_volatile16(slot + piece.unit * 16, words);
  } else {
    device::FlaggedUnit unit;
    unit.set(tile.bytes, stamp_.flag32);
    uint64_t words[4];
    memcpy(words, &unit, sizeof unit);
    uint8_t* to = slot + piece.unit * 32;
    if constexpr (F == PacketFormat::LL8) {
      for (uint32_t i = 0; i < 4; ++i) store_volatile8(to + 8 * i, words[i]);
    } else {
      store_volatile16(to, words);
      store_volatile16(to + 16, words + 2);
    }
  }
}

}  // namespace mscclc::cuda
