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
  /// Data stands beside flags, half of a row.
  static constexpr bool kHalves = F == PacketFormat::LL8 || F == PacketFormat::LL16;
  static constexpr uint32_t kLanes = kLine ? 8 : kHalves ? 2 : 1;  ///< threads that share a unit
  static constexpr uint32_t kPart = kHalves ? 8 : 16;  ///< bytes of data in a row of packets
  /// May plain data end inside a word?
  static constexpr bool kTails = kUneven && Arithmetic::kLeastElement < 4;

 public:
  /// `alone`: the kernel ahead has ended.
  __device__ FastBlock(BlockState& state, const LaunchPlan& plan, uint64_t call, bool alone)
      : Base(state, plan, call),
        operands_(sizeof(StepHeader) / 16 + shared_header().steps * (sizeof(Step) / 16)),
        ahead_(alone ? 0 : kStillRuns) {}

  /// Runs the program in shared memory.
  __device__ void run() {
    if constexpr (!kHasPackets) start_alone();
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
      if (i == shared_header().steps) break;
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
    await_call_ahead();  // the launch behind takes this one's end for that of all ahead of it
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
    if (step.kind == OpKind::copy_packets) {
      if constexpr (kHasPackets) move_units(step);
      return;
    }
    if (step.kind == OpKind::reduce_packets) {
      if constexpr (kHasPackets && Arithmetic::kSums) add_units(step);
      return;
    }
    if constexpr (kHasPackets) start_alone();
    switch (step.kind) {
      case OpKind::copy:
        return copy_rows(step);
      case OpKind::reduce:
        if constexpr (Arithmetic::kSums) add_rows(step);
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

  /// Comes before the first access to data, and before anybody is told anything: until then the
  /// call ahead may run. What it left in the block's counts is under way then, beside that access.
  __device__ void await_call_ahead() {
    if (ahead_ != kStillRuns) return;
    await_kernel_ahead(this->plan_.frees_next);
    state_.stamp_clock(kClockAhead);
    ahead_ = load_relaxed(reinterpret_cast<const uint32_t*>(state_.calls) + 1);
  }
  /// Ends the thread if the call ahead gave up.
  __device__ void check_call_ahead() const {
    if (has_given_up(uint64_t{ahead_} << 32)) exit_thread();
  }

  /// For steps that are not packets: nothing of theirs may overlap the call ahead.
  __device__ void start_alone() {
    await_call_ahead();
    check_call_ahead();
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
    uint32_t warp;    ///< lines: which threads of this one's warp have a part
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
      if constexpr (kLine) {
        const uint32_t left = lanes - i + threadIdx.x % 32;
        part.warp = left < 32 ? (1u << left) - 1 : 0xffffffffu;
      }
      part.offset = uint64_t{part.unit} * kData + part.lane * kPart;
      part.bytes = kLine && part.lane == 7 ? 8 : kPart;
      if (part.offset + part.bytes > step.length) {
        part.bytes =
            part.offset < step.length ? static_cast<uint32_t>(step.length - part.offset) : 0;
      }
      fn(part);
    }
  }

  /// Where a part lies in up to kAtOnce operands.
  struct Places {
    uint8_t* at[kAtOnce];
    uint32_t packets;  ///< bit j: place j holds packets
    __device__ bool holds_packets(uint32_t j) const { return (packets >> j & 1) != 0; }
  };
  /// In `n` operands from `line` on that are `apart`.
  __device__ void find(uint32_t line, uint32_t apart, uint32_t n, const Part& part,
                       Places& places) const {
    places.packets = 0;
#pragma unroll
    for (uint32_t j = 0; j < kAtOnce; ++j) {
      if (j >= n) continue;
      const StepOperand found = operand(line + j * apart);
      const bool packets = (found.flags & device::kPackets) != 0;
      places.at[j] = found.address + (packets ? slot_offset(part) : part.offset);
      places.packets |= packets ? 1u << j : 0;
    }
  }

  // A line has 120 bytes: every other one begins 8 bytes behind a multiple of 16. Two accesses of
  // 8 bytes for all are faster than one of 16 for every other line.
  __device__ static uint4 load_part(const uint8_t* from, const Part& part) {
    if constexpr (kUneven) return load_words<kTails>(from, part.bytes);
    if constexpr (F == PacketFormat::sentinel) {
      return part.bytes == 16 ? *reinterpret_cast<const uint4*>(from) : uint4{};
    }
    uint2 low = {0, 0}, high = {0, 0};
    if (part.bytes >= 8) low = *reinterpret_cast<const uint2*>(from);
    if (kLine && part.bytes == 16) high = *reinterpret_cast<const uint2*>(from + 8);
    return {low.x, low.y, high.x, high.y};
  }
  __device__ static void store_part(uint8_t* to, const Part& part, const uint4& row) {
    if constexpr (kUneven) return store_words<kTails>(to, part.bytes, row);
    if constexpr (F == PacketFormat::sentinel) {
      if (part.bytes == 16) *reinterpret_cast<uint4*>(to) = row;
      return;
    }
    if (part.bytes >= 8) *reinterpret_cast<uint2*>(to) = {row.x, row.y};
    if (kLine && part.bytes == 16) *reinterpret_cast<uint2*>(to + 8) = {row.z, row.w};
  }

  /// Loads the rows that stand in the places that hold packets; true if all have come. All are
  /// loaded before the first look at what came, without a branch, or each load would wait for the
  /// one ahead.
  __device__ bool take(const Places& from, const Part& part, uint4* rows) const {
    uint32_t all = 1;
    if constexpr (kLine) __syncwarp(part.warp);  // a line's eight loads are one instruction
#pragma unroll
    for (uint32_t j = 0; j < kAtOnce; ++j) {
      load_packet_if(from.holds_packets(j), from.at[j], rows[j]);
    }
#pragma unroll
    for (uint32_t j = 0; j < kAtOnce; ++j) {
      all &= static_cast<uint32_t>(!from.holds_packets(j)) | has_come(rows[j], part);
    }
    if constexpr (kLine) return __all_sync(part.warp, all) != 0;  // the flags are in one lane
    return all != 0;
  }
  __device__ uint32_t has_come(const uint4& row, const Part& part) const {
    if constexpr (kHalves) {
      return static_cast<uint32_t>(row.y == stamp_.flag32) &
             static_cast<uint32_t>(row.w == stamp_.flag32);
    } else if constexpr (kLine) {
      return static_cast<uint32_t>(part.lane != 7) |
             (static_cast<uint32_t>(row.z == static_cast<uint32_t>(stamp_.flag64)) &
              static_cast<uint32_t>(row.w == static_cast<uint32_t>(stamp_.flag64 >> 32)));
    } else {
      const auto empty = static_cast<uint32_t>(stamp_.sentinel);
      return static_cast<uint32_t>(row.x != empty) & static_cast<uint32_t>(row.y != empty) &
             static_cast<uint32_t>(row.z != empty) & static_cast<uint32_t>(row.w != empty);
    }
  }
  __device__ void put(uint8_t* slot, const Part& part, uint4 row) const {
    if constexpr (kHalves) {
      row = {row.x, stamp_.flag32, row.y, stamp_.flag32};
    } else if constexpr (kLine) {
      if (part.lane == 7) {
        row.z = static_cast<uint32_t>(stamp_.flag64);
        row.w = static_cast<uint32_t>(stamp_.flag64 >> 32);
      }
      __syncwarp(part.warp);  // a line's eight stores are one instruction
    }
    if constexpr (F == PacketFormat::LL8) {
      store_volatile8(slot, uint64_t{row.y} << 32 | row.x);
      store_volatile8(slot + 8, uint64_t{row.w} << 32 | row.z);
    } else {
      store_packet(slot, row);
    }
  }
  __device__ static uint64_t slot_offset(const Part& part) {
    return uint64_t{part.unit} * Unit<F>::kWire + part.lane * 16;
  }

  /// Reads a part of `n` sources; packets are polled in one loop. Plain data beside sentinels loses
  /// its -0.0. `meanwhile` is called while loads of plain data are under way and packets not yet
  /// waited for. For reports: the operands are in lines `apart` from `line` on.
  template <class Fn>
  __device__ void read(const Step& step, const Places& from, uint32_t line, uint32_t apart,
                       uint32_t n, const Part& part, uint4* rows, Fn meanwhile) {
    await_call_ahead();
#pragma unroll
    for (uint32_t j = 0; j < kAtOnce; ++j) {
      rows[j] = {};
      if (j < n && !from.holds_packets(j)) rows[j] = load_part(from.at[j], part);
    }
    meanwhile();
    if (from.packets != 0) {
      poll(step, from, line, apart, n, part, rows);
      if constexpr (kHalves) {
#pragma unroll
        for (uint32_t j = 0; j < kAtOnce; ++j) {
          if (from.holds_packets(j)) rows[j] = {rows[j].x, rows[j].z, 0, 0};
        }
      }
    }
    if constexpr (F == PacketFormat::sentinel) {
#pragma unroll
      for (uint32_t j = 0; j < kAtOnce; ++j) {
        if (j < n && !from.holds_packets(j)) {
          rows[j] = drop_minus_zeros(rows[j], this->element());
        }
      }
    }
  }
  /// Puts sentinels back into slots that were read. Peers may have been sent what was made of them:
  /// a packet tells nobody that a slot is empty, which is why two calls need two copies of it.
  __device__ void empty(const Places& from) const {
    if constexpr (F == PacketFormat::sentinel) {
      const auto word = static_cast<uint32_t>(stamp_.sentinel);
#pragma unroll
      for (uint32_t j = 0; j < kAtOnce; ++j) {
        if (from.holds_packets(j)) store_packet(from.at[j], {word, word, word, word});
      }
    }
  }
  __device__ void poll(const Step& step, const Places& from, uint32_t line, uint32_t apart,
                       uint32_t n, const Part& part, uint4* rows) {
    uint32_t left = kPollsPerLook;
    uint64_t start = 0;
    while (!take(from, part, rows)) {
      if (--left != 0) continue;
      start = look(state_.waits, start);
      if constexpr (kLine) {
        if (!__all_sync(part.warp, start != 0)) start = 0;  // they go on together
      }
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

  /// Writes a row to the first `n` of the places.
  __device__ void write(const Places& to, uint32_t n, const Part& part, const uint4& row) const {
#pragma unroll
    for (uint32_t j = 0; j < kAtOnce; ++j) {
      if (j < n) write_one(to, j, part, row);
    }
  }
  __device__ void write_one(const Places& to, uint32_t j, const Part& part,
                            const uint4& row) const {
    if (to.holds_packets(j)) {
      put(to.at[j], part, row);
    } else {
      store_part(to.at[j], part, row);
    }
  }
  /// Writes a row to operands [line, end) too: those that are not among the places found before.
  __device__ void write_rest(uint32_t line, uint32_t end, const Part& part,
                             const uint4& row) const {
#pragma unroll 1
    for (; line < end; ++line) {
      Places to;
      find(line, 1, 1, part, to);
      write_one(to, 0, part, row);
    }
  }
  /// The packets of peers are there, so whoever this launch depends on has begun.
  __device__ void free_next() const {
    if (this->frees_next_) let_next_begin();
  }

  /// The moves have one source each; those of kAtOnce moves are read together. Found while data is
  /// under way: the first destination of each or, of a move by itself, its first kAtOnce.
  __device__ void move_units(const Step& step) {
    const uint32_t apart = step.dsts + 1u;
#pragma unroll 1
    for (uint32_t i = 0; i < step.count; i += kAtOnce) {
      const uint32_t line = operands_ + step.first + i * apart, left = step.count - i;
      const uint32_t n = left < kAtOnce ? left : kAtOnce;
      const bool single = n == 1;
      for_each_part(step, [&](const Part& part) {
        uint4 rows[kAtOnce];
        Places from, to;
        find(line + step.dsts, apart, n, part, from);
        read(step, from, line + step.dsts, apart, n, part, rows,
             [&] { find(line, single ? 1 : apart, single ? step.dsts : n, part, to); });
        check_call_ahead();
        if (left <= kAtOnce) free_next();
        if (single) {
          write(to, step.dsts, part, rows[0]);
          write_rest(line + kAtOnce, line + step.dsts, part, rows[0]);
        } else {
#pragma unroll
          for (uint32_t j = 0; j < kAtOnce; ++j) {
            if (j >= n) continue;
            write_one(to, j, part, rows[j]);
            write_rest(line + j * apart + 1, line + j * apart + step.dsts, part, rows[j]);
          }
        }
        empty(from);
      });
    }
  }

  __device__ void add_units(const Step& step) {
#pragma unroll 1
    for (uint32_t i = 0; i < step.count; ++i) {
      const uint32_t line = operands_ + step.first + i * operands_of(step);
      const uint32_t sources = line + step.dsts;
      for_each_part(step, [&](const Part& part) {
        typename Arithmetic::RowSums sums;
        Places from, to;
#pragma unroll 1
        for (uint32_t k = 0;;) {
          const uint32_t left = step.srcs - k, n = left < kAtOnce ? left : kAtOnce;
          uint4 rows[kAtOnce];
          find(sources + k, 1, n, part, from);
          read(step, from, sources + k, 1, n, part, rows, [&] {
            if (!kUneven && left <= kAtOnce) find(line, 1, step.dsts, part, to);
          });
#pragma unroll
          for (uint32_t j = 0; j < kAtOnce; ++j) {
            if (j < n) add_to<Arithmetic>(sums, rows[j], k + j == 0);
          }
          if (left <= kAtOnce) break;
          empty(from);
          k += kAtOnce;
        }
        check_call_ahead();
        if (i + 1 == step.count) free_next();
        uint4 row = Arithmetic::finish(sums, divisor(step));
        if constexpr (F == PacketFormat::sentinel) row = drop_minus_zeros(row, this->element());
        // Words of several destinations, one between the other, travel a tenth slower.
        if constexpr (kUneven) {
          write_rest(line, sources, part, row);
        } else {
          write(to, step.dsts, part, row);
          write_rest(line + kAtOnce, sources, part, row);
        }
        empty(from);
      });
    }
  }

  const uint32_t operands_;  ///< line of the first operand
  /// The upper half of the block's first count as the call ahead left it; while that one may run
  /// kStillRuns, more than any count has there.
  uint32_t ahead_;
  static constexpr uint32_t kStillRuns = 0x7fffffff;
  uint32_t at_ = 0;           ///< the step at hand
  uint32_t loop_ = 0;         ///< the pipeline at hand ...
  uint64_t round_begin_ = 0;  ///< ... and where its round begins, in virtual bytes
};

}  // namespace mscclc::cuda
