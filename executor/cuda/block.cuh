// The CUDA machine: the threads of a thread block, 16 bytes each (interpreter/machine.h says what a
// machine offers). Arithmetic is a parameter: one data type, or whichever the call names.
#pragma once

#include <cstdint>

#include "executor/cuda/access.cuh"
#include "executor/cuda/arithmetic.cuh"
#include "executor/cuda/plain.cuh"
#include "executor/cuda/ports.cuh"
#include "executor/cuda/wait.cuh"
#include "executor/interpreter/machine.h"

namespace mscclc::cuda {

/// The packet formats of device::Uses, a bit for each.
constexpr uint32_t formats_of(uint32_t uses) {
  const auto bit = [](PacketFormat f) { return 1u << static_cast<uint32_t>(f); };
  uint32_t formats = 0;
  if (uses & device::kUsesLL) formats |= bit(PacketFormat::LL8) | bit(PacketFormat::LL16);
  if (uses & device::kUsesLL128) formats |= bit(PacketFormat::LL128);
  if (uses & device::kUsesSentinel) formats |= bit(PacketFormat::sentinel);
  return formats;
}

using device::Barrier;
using device::BaseAddress;
using device::ChannelEnd;
using device::LaunchPlan;
using device::Piece;
using device::RankContext;
using device::Source;
using device::Stretch;
using device::Unit;

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

/// What the threads of a block share, in shared memory.
struct BlockState {
  RankContext rank;
  WaitState waits;
  device::BlockHeader unpacked;  ///< of a program that is not packed: addresses, not offsets
};

/// Where a block's program lies.
struct BlockProgram {
  const device::BlockHeader* header;
  const uint8_t* begin;  ///< what the header's offsets count from

  template <class T>
  __device__ const T* array(uint64_t offset) const {
    return reinterpret_cast<const T*>(begin + offset);
  }
  __device__ device::RankView view() const {
    return {array<device::DeviceOp>(header->ops),
            array<device::Move>(header->moves),
            array<device::DeviceOperand>(header->operands),
            array<device::Run>(header->runs),
            array<uint64_t>(header->offsets),
            array<device::DeviceLoop>(header->loops),
            array<uint32_t>(header->targets),
            header->align};
  }
  __device__ const BaseAddress& base(uint32_t i) const {
    return array<BaseAddress>(header->bases)[i];
  }
  __device__ const ChannelEnd& end(uint32_t i) const { return array<ChannelEnd>(header->ends)[i]; }
  /// The rank's number of one of the program's channels.
  __device__ uint32_t channel(uint32_t i) const {
    return header->channels == 0 ? i : array<uint32_t>(header->channels)[i];
  }
};

/// `kUses`: device::Uses that the block's plan may have.
template <class Arithmetic, uint32_t kUses>
class CudaBlock {
 public:
  static constexpr uint32_t kTogether = 4;
  static constexpr bool kPosts = (kUses & device::kUsesProxy) != 0;
  static constexpr uint32_t kFormats = formats_of(kUses);
  /// Those whose handlers are all it needs: programs are packed (block_programs.h), unless it holds
  /// everything.
  static constexpr bool runs(OpKind kind) {
    if (kUses == device::kUsesAll) return true;
    switch (kind) {
      case OpKind::copy:
      case OpKind::signal:
      case OpKind::wait:
      case OpKind::release:
      case OpKind::acquire:
      case OpKind::barrier:
      case OpKind::sync:
        return true;
      case OpKind::copy_packets:
        return kFormats != 0;
      case OpKind::reduce:
        return (kUses & device::kUsesSums) != 0;
      case OpKind::reduce_packets:
        return (kUses & device::kUsesSums) != 0 && kFormats != 0;
      default:
        return false;
    }
  }
  using Tile = cuda::Tile;
  using Sums = typename Arithmetic::Sums;

  /// The op's reduction.
  struct Arith {
    Arithmetic rows;
    ReduceOp reduce;
    uint32_t divisor;
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

  /// Call number `call` of the block.
  __device__ CudaBlock(BlockState& state, const BlockProgram& program, const LaunchPlan& plan,
                       uint64_t call)
      : state_(state),
        program_(program),
        plan_(plan),
        call_(call),
        arithmetic_(plan),
        stamp_(device::stamp_of(call, arithmetic_.element())) {}

  __device__ void enter(const device::DeviceOp& op) {
    op_ = &op;
    if (gave_up(state_.waits)) exit_thread();
  }
  __device__ uint8_t* base(uint32_t index) const {
    const BaseAddress& b = program_.base(index);
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
      // Two rows at once, which are a whole step of the block apart, where both are full.
      const uint64_t step = row_step();
      for (uint64_t at = threadIdx.x * 16ull; at < s.count; at += step) {
        const uint32_t n = s.count - at < 16 ? static_cast<uint32_t>(s.count - at) : 16;
        Piece piece = device::piece_of<F>(s, s.skip + at, n);
        piece.payload = 16;
        if (at + step + 16 <= s.count) {
          piece.payload = 32;
          at += step;
        }
        fn(piece);
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

  template <class Fn>
  __device__ void for_each_post(uint32_t n, Fn fn) {
    if (threadIdx.x != 0) return;
    for (uint32_t i = 0; i < n; ++i) fn(i);
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
  __device__ void empty_packets(uint8_t* slot, const Piece& piece) {
    const uint64_t empty[2] = {stamp_.sentinel, stamp_.sentinel};
    store_volatile16(slot + piece.unit * 16, empty);
  }
  __device__ void drop_minus_zeros(Tile& tile, uint32_t) const {
    device::drop_minus_zeros(tile.bytes(), 16, element());
  }
  __device__ void copy(uint8_t* to, const uint8_t* from, uint64_t bytes) {
    copy_bytes(to, from, bytes);
  }

  __device__ void signal(uint32_t channel, bool relaxed) {
    const ChannelEnd& end = program_.end(channel);
    if constexpr (kPosts) {
      if (end.port != 0) return post({PortWhat::signal, program_.channel(channel), 0, 0, 0, 0});
    }
    if (gave_up(state_.waits)) exit_thread();
    if (end.partner == nullptr) return;
    if (relaxed) {
      add_relaxed(end.partner);
    } else {
      add_release(end.partner);
    }
  }
  /// Several threads may wait at one end, each for a signal of its own.
  __device__ void wait(uint32_t channel, bool relaxed) {
    const uint64_t* end = program_.end(channel).arrived;
    uint64_t* taken = &state_.rank.channels[program_.channel(channel)].taken;
    const uint64_t before = atomicAdd(reinterpret_cast<unsigned long long*>(taken), 1ull);
    uint64_t arrived = 0;
    await(
        state_.waits,
        [&] {
          arrived = relaxed ? load_relaxed(end) : load_acquire(end);
          return arrived > before;
        },
        [&] {
          return Fault{WaitFor::signal, program_.channel(channel), op_->source, 0, before + 1,
                       arrived};
        });
  }
  __device__ void flush(uint32_t channel) {
    flush_requests(state_.rank.queue, state_.waits, op_->source, program_.channel(channel));
  }
  __device__ void release(uint32_t semaphore) {
    if (gave_up(state_.waits)) exit_thread();
    add_release_gpu(&state_.rank.semaphores[semaphore]);
  }
  __device__ void acquire(uint32_t semaphore) {
    uint64_t* count = &state_.rank.semaphores[semaphore];
    await(
        state_.waits,
        [&] {
          const uint64_t seen = load_relaxed_gpu(count);
          return seen > 0 && take_acquire_gpu(count, seen);
        },
        [&] { return Fault{WaitFor::semaphore, semaphore, op_->source, 0, 1, 0}; });
  }
  __device__ void meet(uint32_t barrier) {
    Barrier& b = state_.rank.barriers[barrier];
    __syncthreads();
    if (threadIdx.x == 0) {
      if (gave_up(state_.waits)) exit_thread();
      const uint64_t full = next_multiple(fetch_add_release_gpu(&b.arrived), b.members);
      uint64_t arrived = 0;
      await(
          state_.waits,
          [&] {
            arrived = load_acquire_gpu(&b.arrived);
            return arrived >= full;
          },
          [&] { return Fault{WaitFor::barrier, barrier, op_->source, 0, full, arrived}; });
    }
    __syncthreads();
  }
  __device__ void sync() { __syncthreads(); }
  __device__ void post_put(uint32_t channel, uint8_t* to, const uint8_t* from, uint64_t bytes) {
    if (threadIdx.x != 0 || bytes == 0) return;
    post({PortWhat::put, program_.channel(channel), reinterpret_cast<uint64_t>(to),
          reinterpret_cast<uint64_t>(from), bytes, 0});
  }

 private:
  /// Which of the sources has not come, and what its slot holds instead.
  template <PacketFormat F>
  __device__ Fault missing(const Source* sources, uint32_t n, const Piece& piece) const {
    const uint64_t stamp = F == PacketFormat::LL128      ? stamp_.flag64
                           : F == PacketFormat::sentinel ? stamp_.sentinel
                                                         : stamp_.flag32;
    Fault fault{WaitFor::packet, 0, op_->source, 0, stamp, stamp};
    bool found = false;
#pragma unroll
    for (uint32_t i = 0; i < kTogether; ++i) {
      if (i >= n || !sources[i].packets || found) continue;
      const Mark mark =
          missing_mark<F>(sources[i].address + piece.unit * Unit<F>::kWire, stamp, stamp_.word);
      fault.index = i;
      fault.expected = mark.expected;
      fault.seen = mark.seen;
      found = mark.missing;
    }
    return fault;
  }

  /// Bytes between the rows of a plain piece.
  __device__ static uint64_t row_step() { return blockDim.x * 16ull; }
  __device__ void post(const PortRequest& request) {
    post_request(state_.rank.queue, state_.waits, op_->source, request);
  }
  /// The next multiple of `step` above `count`.
  __device__ static uint64_t next_multiple(uint64_t count, uint64_t step) {
    if (count >> 32 == 0 && step >> 32 == 0) {  // a short division
      return (static_cast<uint32_t>(count) / static_cast<uint32_t>(step) + 1) * step;
    }
    return (count / step + 1) * step;
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
  BlockState& state_;
  const BlockProgram program_;
  const LaunchPlan& plan_;
  const uint64_t call_;
  const Arithmetic arithmetic_;
  const device::Stamp stamp_;
  const device::DeviceOp* op_ = nullptr;
};

/// The eight lanes of a warp that share a line with this one.
__device__ inline uint32_t line_mask() { return 0xffu << (threadIdx.x & 24u); }

// A line's eight loads are one instruction, and all eight lanes go by its flag.
template <class A, uint32_t U>
__device__ bool CudaBlock<A, U>::take_line(const uint8_t* slot, const Piece& piece,
                                           Tile& tile) const {
  uint64_t words[2];
  __syncwarp(line_mask());
  load_volatile16(slot + piece.unit * 128 + piece.lane * 16, words);
  const uint64_t flag = __shfl_sync(line_mask(), words[1], 7, 8);
  if (piece.lane == 7) words[1] = 0;
  tile.set(words);
  return flag == stamp_.flag64;
}

template <class A, uint32_t U>
template <PacketFormat F>
__device__ bool CudaBlock<A, U>::take(const uint8_t* slot, const Piece& piece, Tile& tile) const {
  if constexpr (F == PacketFormat::LL128) {
    return take_line(slot, piece, tile);
  } else if constexpr (F == PacketFormat::sentinel) {
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
    device::FlaggedUnit unit;
    uint64_t words[4];
    load_volatile16(slot + piece.unit * 32, words);
    load_volatile16(slot + piece.unit * 32 + 16, words + 2);
    memcpy(&unit, words, sizeof unit);
    unit.get(tile.bytes());
    return unit.ready(stamp_.flag32);
  }
}

template <class A, uint32_t U>
template <PacketFormat F>
__device__ void CudaBlock<A, U>::write_packets(uint8_t* slot, const Piece& piece,
                                               const Tile& tile) {
  if constexpr (F == PacketFormat::LL128) {
    uint64_t words[2];
    tile.get(words);
    if (piece.lane == 7) words[1] = stamp_.flag64;
    __syncwarp(line_mask());  // a line's eight stores are one instruction
    store_volatile16(slot + piece.unit * 128 + piece.lane * 16, words);
  } else if constexpr (F == PacketFormat::sentinel) {
    uint64_t words[2];
    tile.get(words);
    store_volatile16(slot + piece.unit * 16, words);
  } else {
    device::FlaggedUnit unit;
    unit.set(tile.bytes(), stamp_.flag32);
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
