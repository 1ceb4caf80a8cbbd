// The machine for the common plans: one packet format, sums of one type, programs that fit in
// shared memory (launch.cu says when). It runs the same steps as the machine for all plans
// (block.cuh), by bodies of its own: those of all machines make a block walk a long chain of
// instructions before each access, and hold so many registers that they spill
// (docs/records has the figures).
//
// The order of sums is the same. So that a thread meets its own bytes again
// (passes/framework/thread_partition.h), a block deals out the units of its packets in one way, and
// cuts all its plain sums in one.
#pragma once

#include <cstdint>

#include "executor/cuda/device/arithmetic.cuh"
#include "executor/cuda/device/block_base.cuh"
#include "executor/cuda/device/call_count.cuh"
#include "executor/cuda/device/packet_rows.cuh"

namespace mscclc::cuda {

/// A packet that has not come, of `n` sources whose lines are `apart`; ends the thread.
template <PacketFormat F>
[[noreturn]] static __device__ __noinline__ void give_up_packets(WaitState& state, uint32_t op,
                                                                 uint32_t line, uint32_t apart,
                                                                 uint32_t n, uint32_t unit,
                                                                 uint64_t stamp, uint32_t call) {
  give_up(state, missing_packet<F>(op, stamp, 4, n, [&](uint32_t i) -> const uint8_t* {
            const StepOperand from = shared_operand(line + i * apart, call);
            if ((from.flags & device::kPackets) == 0) return nullptr;
            return from.address + uint64_t{unit} * Format<F>::kWire;
          }));
}

/// What of step `i` a block moves in a round of a pipeline. Not inlined: few plans have any.
static __device__ __noinline__ device::Range round_of_step(uint32_t i, uint64_t begin,
                                                           uint64_t unit, uint32_t align) {
  return device::range_in_round(shared_step(i), begin, unit, align);
}

// A new kind of step needs a body in run_step(), unless its family is one that no fast kernel
// offers (kernels.cuh), or that BlockBase has the bodies of.
static_assert(device::kinds_of(StepFamily::plain) == 2);
static_assert(device::kinds_of(StepFamily::packets) == 2);
static_assert(device::kinds_of(StepFamily::block) == 3);

/// Packets of plans whose steps may post to the proxy: what copy engines hand on is made of many
/// bytes, which come in these formats.
inline constexpr uint32_t kFormatsWithPorts =
    device::uses_of_formats([](const PacketFormatInfo& row) { return row.is_dense(); });
constexpr bool has_ports(PacketFormat F) { return (device::uses_of(F) & kFormatsWithPorts) != 0; }

/// `kUneven`: plain data begins at multiples of 4 bytes, and ends anywhere; else both at multiples
/// of 16. `kHasPorts`: steps may post to the proxy.
template <class Arithmetic, PacketFormat F, bool kUneven, bool kHasPorts>
class FastBlock : public BlockBase<Arithmetic, kHasPorts> {
  using Base = BlockBase<Arithmetic, kHasPorts>;
  using Base::stamp_;
  using Base::state_;

  static constexpr bool kHasPackets = F != PacketFormat::none;
  /// May plain data end inside a word?
  static constexpr bool kTails = kUneven && Arithmetic::kLeastElement < 4;

  using Rows = PacketRows<F, kUneven, kTails>;
  using Part = typename Rows::Part;
  using Addresses = typename Rows::Addresses;

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
      if (step.kind == StepKind::pipeline) {
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
    await_call_ahead();  // the next launch takes this one's end for that of all before it
  }

 private:
  /// What the sums of a step are divided by. REQUIRES: no step is always an average.
  __device__ uint32_t divisor(const Step& step) const {
    return step.reduce == ReduceOp::call ? this->divisor_of_call(step.flags) : 1;
  }

  __device__ void run_step(const Step& step) {
    this->enter(step);
    if (step.kind == StepKind::move_packets) {
      if constexpr (kHasPackets) move_units(step);
      return;
    }
    if (step.kind == StepKind::reduce_packets) {
      if constexpr (kHasPackets && Arithmetic::kSums) add_units(step);
      return;
    }
    if constexpr (kHasPackets) start_alone();
    switch (step.kind) {
      case StepKind::copy:
        return posts(step) ? post_puts(step) : copy_rows(step);
      case StepKind::reduce:
        if constexpr (Arithmetic::kSums) add_rows(step);
        return;
      case StepKind::sync:
        return this->sync();
      case StepKind::barrier:
        return this->meet(target(step, 0));
      case StepKind::flush:
        if constexpr (kHasPorts) {
          this->flush(step.count, [&](uint32_t i) { return target(step, i).index; });
        }
        return;
      default:
        break;  // it signals or waits: no other is left in plans that this kernel is offered for
    }
    if (signalled(step)) return;
    const bool relaxed = (step.flags & device::kRelaxed) != 0;
    this->for_each_target(step.count, posts(step), [&](uint32_t i) {
      this->synchronise(step.kind, target(step, i), relaxed);
    });
  }
  __device__ static bool posts(const Step& step) {
    return kHasPorts && (step.flags & device::kPosts) != 0;
  }

  __device__ const StepTarget& target(const Step& step, uint32_t i) const {
    const uint32_t line = operands_ + shared_header().operands + step.first + i;
    return *reinterpret_cast<const StepTarget*>(shared_lines() + line);
  }

  /// Comes before the first access to data, and before the first signal: until then the call
  /// ahead may run. What it left in the block's counts is under way then, beside that access.
  __device__ void await_call_ahead() {
    if (ahead_ != kStillRuns) return;
    await_kernel_ahead(this->plan_.frees_next);
    state_.stamp_clock(this->plan_, device::kStampAhead);
    ahead_ = left_by_call_ahead(state_.calls);
  }
  /// Ends the thread if the call ahead gave up.
  __device__ void check_call_ahead() const {
    if (ahead_gave_up(ahead_, this->call_)) exit_thread();
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
          round_of_step(at_, round_begin_, shared_step(loop_).begin, shared_header().align);
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

  /// Has the step before posted the signals, too? It has not where it had nothing to put.
  __device__ bool signalled(const Step& step) {
    if constexpr (!kHasPorts) return false;
    const bool done = with_signals_ && step.kind == StepKind::signal;
    with_signals_ = false;
    return done;
  }

  /// By one thread: the proxy reads the sources later.
  __device__ void post_puts(const Step& step) {
    uint64_t begin, end;
    if (threadIdx.x != 0 || !range(step, begin, end) || begin == end) return;
    with_signals_ = (step.flags & device::kWithSignals) != 0;
    const PortWhat what = with_signals_ ? PortWhat::put_and_signal : PortWhat::put;
    const uint32_t extras = shared_header().operands + shared_header().targets;
    uint32_t line = operands_ + step.first;
#pragma unroll 1
    for (uint32_t i = 0; i < step.count; ++i, line += operands_of(step)) {
      const uint8_t* from = operand(line + step.dsts).address + begin;
#pragma unroll 1
      for (uint32_t k = 0; k < step.dsts; ++k) {
        const auto* extra =
            reinterpret_cast<const device::StepExtra*>(shared_lines() + line + k + extras);
        this->post_move(what, extra->channel, operand(line + k).address + begin, from, end - begin);
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

  template <class Fn>
  __device__ void for_each_part(const Step& step, Fn fn) {
    uint64_t begin, end;
    if (!range(step, begin, end)) return;
    Rows::for_each_part(static_cast<uint32_t>(begin), static_cast<uint32_t>(end), step.length, fn);
  }

  /// In `n` operands from `line` on that are `apart`.
  __device__ void find(uint32_t line, uint32_t apart, uint32_t n, const Part& part,
                       Addresses& to) const {
    to.packets = 0;
#pragma unroll
    for (uint32_t j = 0; j < kAtOnce; ++j) {
      if (j >= n) continue;
      const StepOperand found = operand(line + j * apart);
      const bool packets = (found.flags & device::kPackets) != 0;
      to.at[j] = found.address + (packets ? Rows::slot_offset(part) : part.offset);
      to.packets |= packets ? 1u << j : 0;
    }
  }

  /// Reads a part of `n` sources (PacketRows). For reports: the operands are in lines `apart` from
  /// `line` on.
  template <class Fn>
  __device__ void read(const Step& step, const Addresses& from, uint32_t line, uint32_t apart,
                       uint32_t n, const Part& part, uint4* rows, Fn meanwhile) {
    await_call_ahead();
    Rows::read(state_.waits, stamp_, from, n, part, rows, meanwhile, [&] {
      give_up_packets<F>(state_.waits, step.source, line, apart, n, part.unit,
                         Format<F>::stamp(stamp_), call32());
    });
  }

  /// Writes a row to operands [line, end) too: those that are not among those found before.
  __device__ void write_rest(uint32_t line, uint32_t end, const Part& part, const uint4& row,
                             const uint8_t* from = nullptr) const {
#pragma unroll 1
    for (; line < end; ++line) {
      Addresses to;
      find(line, 1, 1, part, to);
      Rows::write_one(stamp_, to, 0, part, row, from);
    }
  }
  /// The packets of peers are there, so all that this launch depends on has begun.
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
        Addresses from, to;
        find(line + step.dsts, apart, n, part, from);
        read(step, from, line + step.dsts, apart, n, part, rows,
             [&] { find(line, single ? 1 : apart, single ? step.dsts : n, part, to); });
        Rows::make_sendable(from.packets, n, this->element(), rows);
        check_call_ahead();
        if (left <= kAtOnce) free_next();
        if (single) {
          Rows::write(stamp_, to, step.dsts, part, rows[0], from.at[0]);
          write_rest(line + kAtOnce, line + step.dsts, part, rows[0], from.at[0]);
        } else {
#pragma unroll
          for (uint32_t j = 0; j < kAtOnce; ++j) {
            if (j >= n) continue;
            Rows::write_one(stamp_, to, j, part, rows[j], from.at[j]);
            write_rest(line + j * apart + 1, line + j * apart + step.dsts, part, rows[j],
                       from.at[j]);
          }
        }
        Rows::empty(stamp_, from);
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
        Addresses from, to;
        // A loop of its own: by add_up() sums of two-byte types spill.
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
          Rows::empty(stamp_, from);
          k += kAtOnce;
        }
        check_call_ahead();
        if (i + 1 == step.count) free_next();
        const uint4 row = Arithmetic::finish(sums, divisor(step));
        // Words of several destinations, one between the other, travel a tenth slower.
        if constexpr (kUneven) {
          write_rest(line, sources, part, row);
        } else {
          Rows::write(stamp_, to, step.dsts, part, row);
          write_rest(line + kAtOnce, sources, part, row);
        }
        Rows::empty(stamp_, from);
      });
    }
  }

  const uint32_t operands_;  ///< line of the first operand
  /// The upper half of the block's first count as the call ahead left it; while that one may run
  /// kStillRuns, more than any count has there.
  uint32_t ahead_;
  static constexpr uint32_t kStillRuns = 0x7fffffff;
  bool with_signals_ = false;  ///< the thread's last puts had their signals with them
  uint32_t at_ = 0;            ///< the step at hand
  uint32_t loop_ = 0;          ///< the pipeline at hand ...
  uint64_t round_begin_ = 0;   ///< ... and where its round begins, in virtual bytes
};

}  // namespace mscclc::cuda
