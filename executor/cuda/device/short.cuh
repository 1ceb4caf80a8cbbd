// The machine for short programs (interpreter/short_steps.h): a few steps on packets, read from the
// parameters of the launch where they lie.
//
// Between two kernels of a user's, a block's time goes into what comes before its first access:
// each trip to memory that the next one waits for, and code that has to be fetched, and takes long
// where a kernel is large. So this machine is small, it asks for the number
// of its call first, and for its first data before that number has come.
#pragma once

#include <cstdint>

#include "executor/cuda/device/block_base.cuh"
#include "executor/cuda/device/packet_rows.cuh"
#include "executor/interpreter/short_steps.h"

namespace mscclc::cuda {

using device::ShortOperand;
using device::ShortProgram;
using device::ShortStep;

/// What the threads of a block share, in shared memory.
struct ShortState : BlockClock {
  WaitState waits;
  uint64_t call;
};

/// Where an operand of this block lies in call `call`. `late`: how far the block is behind the
/// turn.
__device__ inline uint8_t* address_of(const ShortOperand& operand, uint32_t late, uint32_t call) {
  const uint32_t copy = (call & 1) * operand.stride;
  return operand.address + blockIdx.x * operand.apart - late * operand.shrink +
         uint64_t{copy} * device::kCopyLine;
}
__device__ inline uint32_t late_by(const ShortProgram& program) {
  return blockIdx.x > program.turn ? blockIdx.x - program.turn : 0;
}

/// Unit `unit` of a source of `step` has not come; ends the thread.
template <PacketFormat F>
[[noreturn]] static __device__ __noinline__ void give_up_short(WaitState& state,
                                                               const ShortStep& step, uint32_t late,
                                                               uint32_t unit, uint32_t element,
                                                               uint64_t call) {
  const Stamp stamp = device::stamp_of(call, element);
  const uint64_t expected = Format<F>::stamp(stamp);
  Fault fault{WaitFor::packet, 0,       step.source + blockIdx.x * step.source_apart, 0,
              expected,        expected};
  for (uint32_t j = 0; j < step.srcs; ++j) {
    if (step.from[j].packets == 0) continue;
    const uint8_t* at = address_of(step.from[j], late, static_cast<uint32_t>(call)) +
                        uint64_t{unit} * Format<F>::kWire;
    const FoundMark mark = missing_mark<F>(at, expected, stamp.word);
    fault.index = static_cast<uint32_t>(reinterpret_cast<uint64_t>(at));
    fault.high = static_cast<uint32_t>(reinterpret_cast<uint64_t>(at) >> 32);
    fault.expected = mark.expected;
    fault.seen = mark.seen;
    if (mark.missing) break;
  }
  give_up(state, fault);
}

/// `kMost`: operands that a step has on one side, at most.
template <class Arithmetic, PacketFormat F, uint32_t kMost>
class ShortBlock {
  using Rows = PacketRows<F, false, false, kMost>;
  using Part = typename Rows::Part;
  using Places = typename Rows::Places;
  /// A row of each source.
  struct Data {
    uint4 rows[kMost];
  };

 public:
  __device__ ShortBlock(ShortState& state, const LaunchPlan& plan, const ShortProgram& program)
      : state_(state), plan_(plan), program_(program), arithmetic_(plan), late_(late_by(program)) {}

  /// `clocks`: rows of stamps (clocks.h).
  __device__ void run(uint64_t* clocks) {
    state_.begin_clock(clocks);
    uint64_t* const calls = plan_.calls + blockIdx.x;
    uint64_t call = 0;
    if (threadIdx.x == 0) call = fetch_add_relaxed_gpu(calls);
    const ShortStep& first = program_.step[0];
    Part part;
    const bool puts = program_.puts != 0 && find_part(first, threadIdx.x, part);
    Data data;
    await_kernel_ahead(false);
    state_.stamp_clock(kClockAhead);
    // The upper half, as the call ahead left it.
    const uint32_t ahead = load_relaxed(reinterpret_cast<const uint32_t*>(calls) + 1);
    if (puts) load_plain(first, part, data);
    if (threadIdx.x == 0) {
      if (plan_.begun != nullptr) add_relaxed(plan_.begun);
      state_.waits = {plan_.context, calls, blockIdx.x, plan_.patience, 0, 0};
      state_.call = call;
    }
    __syncthreads();
    // This call is counted, so the next one may be.
    if (plan_.frees_next) let_next_begin();
    call_ = state_.call;
    if (has_given_up(call_) || has_given_up(uint64_t{ahead} << 32)) exit_thread();
    stamp_ = device::stamp_of(call_, arithmetic_.element());
    state_.stamp_clock(kClockCounts);
    if (puts) put(first, part, data);
#pragma unroll 1
    for (uint32_t s = program_.puts; s < program_.steps; ++s) run_step(program_.step[s]);
    state_.stamp_clock(kClockEnd);
  }

 private:
  __device__ uint32_t call32() const { return static_cast<uint32_t>(call_); }

  /// Part `i` of a step, counted over units; false: there are fewer.
  __device__ bool find_part(const ShortStep& step, uint32_t i, Part& part) const {
    const bool late = blockIdx.x >= program_.turn;
    const uint32_t length = late ? step.late_length : step.length;
    const uint32_t begin = step.begin * Rows::kLanes;
    const uint32_t end = (late ? step.late_end : step.end) * Rows::kLanes;
    i += begin;
    if (i >= end) return false;
    part.unit = i / Rows::kLanes;
    part.lane = i % Rows::kLanes;
    if constexpr (Rows::kLine) {
      const uint32_t left = end - i + threadIdx.x % 32;
      part.warp = left < 32 ? (1u << left) - 1 : 0xffffffffu;
    }
    part.offset = uint64_t{part.unit} * Format<F>::kData + part.lane * Rows::kPart;
    part.bytes = Rows::kLine && part.lane == Rows::kLast ? 8 : Rows::kPart;
    if (part.offset + part.bytes > length) {
      part.bytes = part.offset < length ? static_cast<uint32_t>(length - part.offset) : 0;
    }
    return true;
  }

  /// Plain data has one copy, so it is where it is in all calls.
  __device__ void load_plain(const ShortStep& step, const Part& part, Data& data) const {
#pragma unroll
    for (uint32_t j = 0; j < kMost; ++j) {
      data.rows[j] = {};
      if (j >= step.srcs || step.from[j].packets != 0) continue;
      data.rows[j] = Rows::load_part(address_of(step.from[j], late_, 0) + part.offset, part);
    }
  }
  /// Beside sentinels, plain data loses its -0.0.
  __device__ void drop_minus_zeros_of_plain(const ShortStep& step, Data& data) const {
    if constexpr (Format<F>::kSentinel) {
#pragma unroll
      for (uint32_t j = 0; j < kMost; ++j) {
        if (j >= step.srcs || step.from[j].packets != 0) continue;
        data.rows[j] = drop_minus_zeros(data.rows[j], arithmetic_.element());
      }
    }
  }

  /// Of the first `n` operands; `kPackets`: of those that hold packets.
  template <bool kPackets>
  __device__ void find(const ShortOperand* operands, uint32_t n, const Part& part,
                       Places& places) const {
    places.packets = 0;
#pragma unroll
    for (uint32_t j = 0; j < kMost; ++j) {
      if (j >= n) continue;
      const bool packets = operands[j].packets != 0;
      if (kPackets && !packets) continue;
      places.at[j] = address_of(operands[j], late_, call32()) +
                     (packets ? Rows::slot_offset(part) : part.offset);
      places.packets |= packets ? 1u << j : 0;
    }
  }

  /// The first step, which reads no packets: `data` is of its first part.
  __device__ void put(const ShortStep& step, Part part, Data& data) {
    if (step.frees_next != 0 && threadIdx.x == 0) let_next_begin();
    for (uint32_t i = threadIdx.x;;) {
      Places to;
      find<false>(step.to, step.dsts, part, to);
      drop_minus_zeros_of_plain(step, data);
      write(step, to, part, data);
      i += blockDim.x;
      if (!find_part(step, i, part)) return;
      load_plain(step, part, data);
    }
  }

  __device__ void run_step(const ShortStep& step) {
    state_.stamp_clock(kClockSteps + static_cast<uint32_t>(step.adds != 0
                                                               ? device::StepKind::reduce_packets
                                                               : device::StepKind::move_packets));
    if (gave_up(state_.waits)) exit_thread();
    Part part;
#pragma unroll 1
    for (uint32_t i = threadIdx.x; find_part(step, i, part); i += blockDim.x) {
      Data data;
      load_plain(step, part, data);
      Places from, to;
      find<true>(step.from, step.srcs, part, from);
      find<false>(step.to, step.dsts, part, to);
      if (from.packets != 0) poll(step, from, part, data);
      drop_minus_zeros_of_plain(step, data);
      // The packets of peers have come, so whoever this launch depends on has begun.
      if (step.frees_next != 0 && threadIdx.x == 0) let_next_begin();
      if constexpr (Arithmetic::kSums) {
        if (step.adds != 0) data.rows[0] = sum(step, data);
      }
      write(step, to, part, data);
      Rows::empty(stamp_, from);
    }
  }

  __device__ void write(const ShortStep& step, const Places& to, const Part& part,
                        const Data& data) const {
#pragma unroll
    for (uint32_t j = 0; j < kMost; ++j) {
      if (j >= step.dsts) continue;
      const uint4 row = step.pairs != 0 ? data.rows[j] : data.rows[0];
      Rows::write_one(stamp_, to, j, part, row);
    }
  }

  __device__ void poll(const ShortStep& step, const Places& from, const Part& part, Data& data) {
    uint32_t left = kPollsPerLook;
    uint64_t start = 0;
    while (!Rows::take(stamp_, from, part, data.rows)) {
      if (--left != 0) continue;
      start = look(state_.waits, start);
      if constexpr (Rows::kLine) {
        if (!__all_sync(part.warp, start != 0)) start = 0;  // they go on together
      }
      if (start == 0) {
        give_up_short<F>(state_.waits, step, late_, part.unit, arithmetic_.element(), call_);
      }
      left = kPollsPerLook;
    }
#pragma unroll
    for (uint32_t j = 0; j < kMost; ++j) {
      if (from.holds_packets(j)) data.rows[j] = Rows::data_of(data.rows[j]);
    }
  }

  __device__ uint4 sum(const ShortStep& step, const Data& data) const {
    typename Arithmetic::RowSums sums;
#pragma unroll
    for (uint32_t j = 0; j < kMost; ++j) {
      const uint4 row = data.rows[j];
      if (j < step.srcs) add_to<Arithmetic>(sums, row, j == 0);
    }
    const bool divides = step.averages != 0 && plan_.reduce == ReduceOp::avg;
    const uint4 row = Arithmetic::finish(sums, divides ? plan_.contributions : 1);
    if constexpr (Format<F>::kSentinel) return drop_minus_zeros(row, arithmetic_.element());
    return row;
  }

  ShortState& state_;
  const LaunchPlan& plan_;
  const ShortProgram& program_;
  const Arithmetic arithmetic_;
  const uint32_t late_;  ///< by how many blocks this one is behind the turn
  uint64_t call_ = 0;
  Stamp stamp_;
};

}  // namespace mscclc::cuda
