// The machine for the common plans: one packet format, sums of one type, programs that fit in
// shared memory (launch.cu says when). It runs the same steps as the machine for all plans
// (block.cuh), by bodies of its own: those of all machines make a block walk a long chain of
// instructions before each access, and hold so many registers that they spill
// (docs/performance.md has the figures).
//
// Who gets which unit of packets, and the order of sums, is the same. So that a thread meets its
// own bytes again (passes/thread_partition.h), a block cuts all its plain sums in one way.
#pragma once

#include <cstdint>

#include "executor/cuda/arithmetic.cuh"
#include "executor/cuda/block_base.cuh"
#include "executor/cuda/packet_mark.cuh"
#include "executor/cuda/plain_sums.cuh"

namespace mscclc::cuda {

/// A packet that has not come, of `n` sources whose lines are `apart`; ends the thread.
template <PacketFormat F>
[[noreturn]] static __device__ __noinline__ void give_up_packets(WaitState& state, uint32_t op,
                                                                 uint32_t line, uint32_t apart,
                                                                 uint32_t n, uint32_t unit,
                                                                 uint64_t stamp, uint32_t call) {
  Fault fault{WaitFor::packet, 0, op, 0, stamp, stamp};
  for (uint32_t i = 0; i < n; ++i) {
    const StepOperand from = shared_operand(line + i * apart, call);
    if ((from.flags & device::kPackets) == 0) continue;
    const uint8_t* at = from.address + uint64_t{unit} * Unit<F>::kWire;
    const Mark mark = missing_mark<F>(at, stamp, 4);
    fault.index = static_cast<uint32_t>(reinterpret_cast<uint64_t>(at));
    fault.high = static_cast<uint32_t>(reinterpret_cast<uint64_t>(at) >> 32);
    fault.expected = mark.expected;
    fault.seen = mark.seen;
    if (mark.missing) break;
  }
  give_up(state, fault);
}

/// What of a step a block moves in a round of a pipeline.
static __device__ __noinline__ device::Range range_in_round(uint32_t i, uint64_t begin,
                                                            uint64_t unit, uint32_t align) {
  const Step& step = shared_step(i);
  const device::Range own =
      device::share_of_round({begin, begin + unit}, step.move_end, step.part, step.parts, align);
  return {own.begin > step.begin ? own.begin : step.begin, own.end < step.end ? own.end : step.end};
}

/// `kUneven`: plain data begins at multiples of 4 bytes, and ends anywhere; else both at multiples
/// of 16.
template <class Arithmetic, PacketFormat F, bool kUneven>
class FastBlock : public BlockBase<Arithmetic, false> {
  using Base = BlockBase<Arithmetic, false>;
  using Base::stamp_;
  using Base::state_;

  static constexpr bool kHasPackets = F != PacketFormat::none;
  static constexpr bool kLine = F == PacketFormat::LL128;
  /// Data stands beside flags, in two rows of a slot.
  static constexpr bool kHalves = F == PacketFormat::LL8 || F == PacketFormat::LL16;
  static constexpr uint32_t kLanes = kLine ? 8 : 1;  ///< threads that share a unit
  /// May plain data end inside a word?
  static constexpr bool kTails = kUneven && Arithmetic::kLeastElement < 4;

 public:
  __device__ FastBlock(BlockState& state, const LaunchPlan& plan, uint64_t call)
      : Base(state, plan, call),
        operands_(sizeof(StepHeader) / 16 + shared_header().steps * (sizeof(Step) / 16)) {}

  /// Loads, into the cache, what this thread's first packet is made of. The call's number is still
  /// under way then, without which no packet can be sent.
  static __device__ void ask_ahead() {
    if constexpr (kHasPackets) {
      const StepHeader& header = shared_header();
      if (header.steps == 0) return;
      const Step step = load_step(0);
      if (step.kind != OpKind::copy_packets || step.dsts != 1) return;
      const uint64_t unit = step.begin - step.run_begin + threadIdx.x / kLanes;
      const uint64_t offset = unit * Unit<F>::kData + threadIdx.x % kLanes * 16;
      if (unit >= step.end - step.run_begin || offset + 4 > step.length) return;
      const uint32_t line =
          sizeof(StepHeader) / 16 + header.steps * (sizeof(Step) / 16) + step.first + step.dsts;
#pragma unroll
      for (uint32_t j = 0; j < kAtOnce; ++j) {
        if (j >= step.count) break;
        const StepOperand from = shared_operand(line + j * 2, 0);
        if ((from.flags & device::kPackets) == 0) touch(from.address + offset);
      }
    }
  }

  /// Runs the program in shared memory.
  __device__ void run() {
    uint32_t body_end = device::kNoChannel;  // of the pipeline at hand, if there is one
    for (uint32_t i = 0;;) {
      if (i == body_end) {
        const Step& loop = shared_step(loop_);
        round_begin_ += loop.begin;
        if (round_begin_ < loop.begin * loop.end) {
          i = loop_ + 1;
        } else {
          body_end = device::kNoChannel;
        }
      }
      if (i == shared_header().steps) return;
      const Step step = load_step(i);
      if (step.kind == OpKind::pipeline) {
        loop_ = i;
        round_begin_ = 0;
        const bool empty = step.end == 0 || step.count == 0;
        body_end = empty ? device::kNoChannel : i + 1 + step.count;
        i += empty ? 1 + step.count : 1;
        continue;
      }
      at_ = i++;
      run_step(step);
    }
  }

 private:
  /// What the sums of a step are divided by. REQUIRES: no step is always an average.
  __device__ uint32_t divisor(const Step& step) const {
    const bool divides = step.reduce == ReduceOp::call && (step.flags & device::kComplete) != 0;
    return divides ? state_.divisor : 1;
  }

  __device__ void run_step(const Step& step) {
    state_.stamp_clock(kClockSteps + static_cast<uint32_t>(step.kind));
    this->enter(step);
    switch (step.kind) {
      case OpKind::copy:
        return copy_rows(step);
      case OpKind::reduce:
        if constexpr (Arithmetic::kSums) add_rows(step);
        return;
      case OpKind::copy_packets:
        if constexpr (kHasPackets) move_units(step);
        return;
      case OpKind::reduce_packets:
        if constexpr (kHasPackets && Arithmetic::kSums) add_units(step);
        return;
      case OpKind::sync:
        return this->sync();
      case OpKind::barrier:
        return this->meet(target(step, 0));
      default:
        break;
    }
#pragma unroll 1
    for (uint32_t i = threadIdx.x; i < step.count; i += blockDim.x) synchronise(step, i);
  }

  __device__ void synchronise(const Step& step, uint32_t i) {
    const StepTarget& t = target(step, i);
    const bool relaxed = (step.flags & device::kRelaxed) != 0;
    switch (step.kind) {
      case OpKind::signal:
        return this->signal(t, relaxed);
      case OpKind::wait:
        return this->wait(t, relaxed);
      case OpKind::release:
        return this->release(t);
      case OpKind::acquire:
        return this->acquire(t);
      default:
        return;
    }
  }
  __device__ const StepTarget& target(const Step& step, uint32_t i) const {
    const uint32_t line = operands_ + shared_header().operands + step.first + i;
    return *reinterpret_cast<const StepTarget*>(shared_lines() + line);
  }

  /// What the block moves now of the step's run; false: nothing.
  __device__ bool range(const Step& step, uint64_t& begin, uint64_t& end) const {
    begin = step.begin;
    end = step.end;
    if ((step.flags & device::kInLoop) != 0) {
      const device::Range own =
          range_in_round(at_, round_begin_, shared_step(loop_).begin, shared_header().align);
      if (own.begin >= own.end) return false;
      begin = own.begin;
      end = own.end;
    }
    begin -= step.run_begin;
    end -= step.run_begin;
    return true;
  }
  __device__ uint32_t call32() const { return static_cast<uint32_t>(this->call_); }
  __device__ StepOperand operand(uint32_t line) const { return shared_operand(line, call32()); }
  __device__ uint32_t operands_of(const Step& step) const {
    return uint32_t{step.dsts} + step.srcs;
  }

  // Plain data.

  __device__ void copy_rows(const Step& step) {
    uint64_t begin, end;
    if (!range(step, begin, end)) return;
    uint32_t line = operands_ + step.first;
#pragma unroll 1
    for (uint32_t i = 0; i < step.count; ++i, line += operands_of(step)) {
      const uint8_t* from = operand(line + step.dsts).address + begin;
#pragma unroll 1
      for (uint32_t k = 0; k < step.dsts; ++k) {
        uint8_t* to = operand(line + k).address + begin;
        if (to == from) continue;
        if constexpr (kUneven) {
          copy_uneven(to, from, end - begin);
        } else {
          copy_words<uint4, 4>(to, from, (end - begin) / 16);
        }
      }
    }
  }

  __device__ void add_rows(const Step& step) {
    uint64_t begin, end;
    if (!range(step, begin, end)) return;
#pragma unroll 1
    for (uint32_t i = 0; i < step.count; ++i) {
      const uint32_t line = operands_ + step.first + i * operands_of(step);
      const uint32_t sources = line + step.dsts;
      const PlainSum sum{line, sources, sources + step.srcs, divisor(step), call32()};
      if constexpr (kUneven) {
        add_uneven<Arithmetic>(sum, begin, end);
      } else {
#pragma unroll 1
        for (uint64_t at = begin + threadIdx.x * 16; at < end; at += blockDim.x * 16) {
          sum.template add_row<Arithmetic>(WholeRow{at});
        }
      }
    }
  }

  // Packets.

  /// A thread's part of a unit.
  struct Part {
    uint32_t unit, lane;
    uint32_t bytes;   ///< how much of it is data
    uint64_t offset;  ///< in plain data
  };

  template <class Fn>
  __device__ void for_each_part(const Step& step, Fn fn) {
    constexpr uint32_t kData = Unit<F>::kData;
    uint64_t begin, end;
    if (!range(step, begin, end)) return;
    const auto lanes = static_cast<uint32_t>(end) * kLanes;
#pragma unroll 1
    for (auto i = static_cast<uint32_t>(begin) * kLanes + threadIdx.x; i < lanes; i += blockDim.x) {
      Part part;
      part.unit = i / kLanes;
      part.lane = i % kLanes;
      part.offset = uint64_t{part.unit} * kData + part.lane * 16;
      part.bytes = kLine && part.lane == 7 ? 8 : 16;
      if (part.offset + part.bytes > step.length) {
        part.bytes =
            part.offset < step.length ? static_cast<uint32_t>(step.length - part.offset) : 0;
      }
      fn(part);
    }
  }

  // A line has 120 bytes: every other one begins 8 bytes behind a multiple of 16.
  __device__ static bool whole(const uint8_t* at, const Part& part) {
    return part.bytes == 16 && (!kLine || (low_bits(at) & 15) == 0);
  }
  __device__ static uint4 load_part(const uint8_t* from, const Part& part) {
    if constexpr (kUneven) return load_words<kTails>(from, part.bytes);
    if (whole(from, part)) return *reinterpret_cast<const uint4*>(from);
    uint2 low = {0, 0}, high = {0, 0};
    if (part.bytes >= 8) low = *reinterpret_cast<const uint2*>(from);
    if (part.bytes == 16) high = *reinterpret_cast<const uint2*>(from + 8);
    return {low.x, low.y, high.x, high.y};
  }
  __device__ static void store_part(uint8_t* to, const Part& part, const uint4& row) {
    if constexpr (kUneven) return store_words<kTails>(to, part.bytes, row);
    if (whole(to, part)) {
      *reinterpret_cast<uint4*>(to) = row;
      return;
    }
    if (part.bytes >= 8) *reinterpret_cast<uint2*>(to) = {row.x, row.y};
    if (part.bytes == 16) *reinterpret_cast<uint2*>(to + 8) = {row.z, row.w};
  }

  /// Loads what stands in the slots that are there (not nullptr); true if all packets have come.
  /// Slots of one access are all loaded before the first look at what came, without a branch, or
  /// each load would wait for the one ahead. Where a slot takes two, that was slower.
  __device__ bool take(const uint8_t* const* slots, const Part& part, uint4* rows) const {
    bool all = true;
    if constexpr (kHalves) {
#pragma unroll
      for (uint32_t j = 0; j < kAtOnce; ++j) {
        if (slots[j] != nullptr) all &= take_halves(slots[j], rows[j]);
      }
    } else {
      if constexpr (kLine) __syncwarp(line_mask());  // a line's eight loads are one instruction
#pragma unroll
      for (uint32_t j = 0; j < kAtOnce; ++j) {
        load_packet_if(slots[j] != nullptr, slots[j] + (kLine ? part.lane * 16 : 0), rows[j]);
      }
#pragma unroll
      for (uint32_t j = 0; j < kAtOnce; ++j) {
        all &= static_cast<uint32_t>(slots[j] == nullptr) | has_come(rows[j]);
      }
    }
    return all;
  }
  /// LL8 and LL16: data stands beside flags, in two rows.
  __device__ bool take_halves(const uint8_t* slot, uint4& row) const {
    const uint4 low = load_packet(slot), high = load_packet(slot + 16);
    row = {low.x, low.z, high.x, high.z};
    const uint32_t flag = stamp_.flag32;
    return low.y == flag && low.w == flag && high.y == flag && high.w == flag;
  }
  __device__ uint32_t has_come(const uint4& row) const {
    if constexpr (kLine) {
      const uint64_t flag = uint64_t{__shfl_sync(line_mask(), row.w, 7, 8)} << 32 |
                            __shfl_sync(line_mask(), row.z, 7, 8);
      return flag == stamp_.flag64;
    } else {
      const auto empty = static_cast<uint32_t>(stamp_.sentinel);
      return static_cast<uint32_t>(row.x != empty) & static_cast<uint32_t>(row.y != empty) &
             static_cast<uint32_t>(row.z != empty) & static_cast<uint32_t>(row.w != empty);
    }
  }
  __device__ void put(uint8_t* slot, const Part& part, uint4 row) const {
    if constexpr (kLine) {
      if (part.lane == 7) {
        row.z = static_cast<uint32_t>(stamp_.flag64);
        row.w = static_cast<uint32_t>(stamp_.flag64 >> 32);
      }
      __syncwarp(line_mask());  // a line's eight stores are one instruction
      store_packet(slot + part.lane * 16, row);
    } else if constexpr (F == PacketFormat::sentinel) {
      store_packet(slot, row);
    } else {
      const uint32_t flag = stamp_.flag32;
      const uint4 low = {row.x, flag, row.y, flag}, high = {row.z, flag, row.w, flag};
      if constexpr (F == PacketFormat::LL8) {
        store_halves(slot, low);
        store_halves(slot + 16, high);
      } else {
        store_packet(slot, low);
        store_packet(slot + 16, high);
      }
    }
  }
  __device__ static void store_halves(uint8_t* slot, const uint4& row) {
    store_volatile8(slot, uint64_t{row.y} << 32 | row.x);
    store_volatile8(slot + 8, uint64_t{row.w} << 32 | row.z);
  }
  __device__ static uint64_t slot_offset(const Part& part) {
    return uint64_t{part.unit} * Unit<F>::kWire;
  }

  /// Reads a part of `n` sources, whose lines are `apart`; packets are polled in one loop, and
  /// `slots` says where they were (nullptr: plain). Plain data beside sentinels loses its -0.0.
  /// `meanwhile` is called while loads of plain data are under way and packets not yet waited for.
  template <class Fn>
  __device__ void read(const Step& step, uint32_t line, uint32_t apart, uint32_t n,
                       const Part& part, uint4* rows, const uint8_t** slots, Fn meanwhile) {
    bool any = false;
#pragma unroll
    for (uint32_t j = 0; j < kAtOnce; ++j) {
      slots[j] = nullptr;
      if constexpr (!kHalves) rows[j] = {};
      if (j >= n) continue;
      const StepOperand from = operand(line + j * apart);
      if ((from.flags & device::kPackets) != 0) {
        slots[j] = from.address + slot_offset(part);
        any = true;
      } else {
        rows[j] = load_part(from.address + part.offset, part);
      }
    }
    meanwhile();
    if (any) poll(step, slots, line, apart, n, part, rows);
    if constexpr (F == PacketFormat::sentinel) {
#pragma unroll
      for (uint32_t j = 0; j < kAtOnce; ++j) {
        if (j < n && slots[j] == nullptr) rows[j] = drop_minus_zeros(rows[j], this->element());
      }
    }
  }
  /// Puts sentinels back into slots that were read. Peers may have been sent what was made of them:
  /// a packet tells nobody that a slot is empty, which is why two calls need two copies of it.
  __device__ void empty(const uint8_t* const* slots) const {
    if constexpr (F == PacketFormat::sentinel) {
      const auto word = static_cast<uint32_t>(stamp_.sentinel);
#pragma unroll
      for (uint32_t j = 0; j < kAtOnce; ++j) {
        if (slots[j] != nullptr) {
          store_packet(const_cast<uint8_t*>(slots[j]), {word, word, word, word});
        }
      }
    }
  }
  __device__ void poll(const Step& step, const uint8_t* const* slots, uint32_t line, uint32_t apart,
                       uint32_t n, const Part& part, uint4* rows) {
    uint32_t left = kPollsPerLook;
    uint64_t start = 0;
    while (!take(slots, part, rows)) {
      if (--left != 0) continue;
      start = look(state_.waits, start);
      if (start == 0) {
        give_up_packets<F>(state_.waits, step.source, line, apart, n, part.unit,
                           kLine                         ? stamp_.flag64
                           : F == PacketFormat::sentinel ? stamp_.sentinel
                                                         : stamp_.flag32,
                           call32());
      }
      left = kPollsPerLook;
    }
  }

  /// Up to kAtOnce operands from `line` on that are `apart`.
  __device__ void load_operands(uint32_t line, uint32_t apart, uint32_t n, StepOperand* to) const {
#pragma unroll
    for (uint32_t j = 0; j < kAtOnce; ++j) {
      if (j < n) to[j] = operand(line + j * apart);
    }
  }
  /// Writes a row to the destinations of a move. The first kAtOnce of them were read before, ahead
  /// of the wait for their data.
  __device__ void write(const Step& step, uint32_t line, StepOperand* to, const Part& part,
                        const uint4& row) {
#pragma unroll 1
    for (uint32_t k = 0;;) {
#pragma unroll
      for (uint32_t j = 0; j < kAtOnce; ++j) {
        if (k + j < step.dsts) write_one(to[j], part, row);
      }
      k += kAtOnce;
      if (k >= step.dsts) return;
      load_operands(line + k, 1, step.dsts - k, to);
    }
  }
  /// Destinations of a move but for its first.
  __device__ void write_rest(const Step& step, uint32_t line, const Part& part, const uint4& row) {
#pragma unroll 1
    for (uint32_t k = 1; k < step.dsts; ++k) write_one(operand(line + k), part, row);
  }
  __device__ void write_one(const StepOperand& to, const Part& part, const uint4& row) {
    if ((to.flags & device::kPackets) != 0) {
      put(to.address + slot_offset(part), part, row);
    } else {
      store_part(to.address + part.offset, part, row);
    }
  }

  /// The moves have one source each; those of kAtOnce moves are read together.
  __device__ void move_units(const Step& step) {
    const uint32_t apart = step.dsts + 1u;
#pragma unroll 1
    for (uint32_t i = 0; i < step.count; i += kAtOnce) {
      const uint32_t line = operands_ + step.first + i * apart, left = step.count - i;
      const uint32_t n = left < kAtOnce ? left : kAtOnce;
      for_each_part(step, [&](const Part& part) {
        uint4 rows[kAtOnce];
        StepOperand to[kAtOnce];  // the first destination of each
        const uint8_t* slots[kAtOnce];
        read(step, line + step.dsts, apart, n, part, rows, slots,
             [&] { load_operands(line, apart, n, to); });
#pragma unroll
        for (uint32_t j = 0; j < kAtOnce; ++j) {
          if (j >= n) continue;
          write_one(to[j], part, rows[j]);
          write_rest(step, line + j * apart, part, rows[j]);
        }
        empty(slots);
      });
    }
  }

  __device__ void add_units(const Step& step) {
#pragma unroll 1
    for (uint32_t i = 0; i < step.count; ++i) {
      const uint32_t line = operands_ + step.first + i * operands_of(step);
      for_each_part(step, [&](const Part& part) {
        typename Arithmetic::RowSums sums;
        StepOperand to[kAtOnce];
        const uint8_t* slots[kAtOnce];
#pragma unroll 1
        for (uint32_t k = 0; k < step.srcs; k += kAtOnce) {
          const uint32_t left = step.srcs - k, n = left < kAtOnce ? left : kAtOnce;
          uint4 rows[kAtOnce];
          if (k > 0) empty(slots);
          read(step, line + step.dsts + k, 1, n, part, rows, slots, [&] {
            if (left <= kAtOnce) load_operands(line, 1, step.dsts, to);
          });
#pragma unroll
          for (uint32_t j = 0; j < kAtOnce; ++j) {
            if (j < n) add_to<Arithmetic>(sums, rows[j], k + j == 0);
          }
        }
        uint4 row = Arithmetic::finish(sums, divisor(step));
        if constexpr (F == PacketFormat::sentinel) row = drop_minus_zeros(row, this->element());
        write(step, line, to, part, row);
        empty(slots);
      });
    }
  }

  const uint32_t operands_;   ///< line of the first operand
  uint32_t at_ = 0;           ///< the step at hand
  uint32_t loop_ = 0;         ///< the pipeline at hand ...
  uint64_t round_begin_ = 0;  ///< ... and where its round begins, in virtual bytes
};

}  // namespace mscclc::cuda
