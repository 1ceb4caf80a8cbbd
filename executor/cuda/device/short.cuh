// The machine for short programs (interpreter/short_steps.h): a few steps on packets, and signals
// beside them, read from the parameters of the launch where they lie.
//
// Between two kernels of a user's, a block's time goes into what comes before its first access:
// each trip to memory that the next one waits for, and code, which has to be fetched. So this
// machine is small; it asks for the number of its call first, and for its first data before that
// number has come; the threads of a block meet once they have sent it. A launch that begins after
// the end of the kernel ahead has its counts to itself: it reads the number, which is quicker than
// adding to it, and adds once its first packets are out: in its last thread, as the first warps
// have data however little there is, and would wait.
#pragma once

#include <cstdint>

#include "executor/cuda/device/block_base.cuh"
#include "executor/cuda/device/call_count.cuh"
#include "executor/cuda/device/packet_rows.cuh"
#include "executor/cuda/device/signals.cuh"
#include "executor/interpreter/short_steps.h"

namespace mscclc::cuda {

using device::ShortHead;
using device::ShortOperand;
using device::ShortProgram;
using device::ShortRange;
using device::ShortStep;
using device::ShortTarget;

inline constexpr uint32_t kMaxShortThreads = 512;

/// What the threads of a block share, in shared memory.
struct ShortState {
  WaitState waits;
  uint64_t call;
  volatile uint32_t counted;                       ///< not 0: count_call_late() has done so
  volatile uint32_t asked[kMaxShortThreads / 32];  ///< by warp: ask_parameters()
};

/// Asks for the parameters that a block reads first, a line of them a warp: side by side, where
/// constants are otherwise fetched one line after the other, as each is needed. The result must be
/// stored, or the compiler leaves it out.
__device__ inline uint32_t ask_parameters(const uint32_t* parameters) {
  constexpr uint32_t kLine = 64 / sizeof(uint32_t), kSecond = 48 / sizeof(uint32_t);
  return parameters[kSecond + threadIdx.x / 32 * kLine];  // the first comes with the first access
}

/// Asks for the number of the block's call. `kEarly`: the first thread does, and counts the call,
/// as the one ahead, which may still run, has counted itself before it let this one begin; returns
/// the number. Else each thread does, and the number goes to shared memory: what a thread waits for
/// is known by groups of its loads, and it would wait for its data, too.
template <bool kEarly>
__device__ inline uint64_t ask_call(ShortState& state, uint64_t* calls) {
  if constexpr (kEarly) return threadIdx.x == 0 ? fetch_add_relaxed_gpu(calls) : 0;
  copy_to_shared(&state.call, calls);
  return 0;
}
/// The threads of the block meet. What is not needed to do so, a thread does that need not wait for
/// the number of the call.
__device__ inline void meet(ShortState& state, const LaunchPlan& plan) {
  if (threadIdx.x == blockDim.x - 1) {
    if (plan.begun != nullptr) add_relaxed(plan.begun);
    state.waits = wait_state(plan, state.call);
    state.counted = 0;
  }
  __syncthreads();
}
/// Gives the number that the first thread has to all threads of the block, which meet.
__device__ inline uint64_t share_call(ShortState& state, const LaunchPlan& plan, uint64_t number) {
  if (threadIdx.x == 0) state.call = number;
  meet(state, plan);
  return state.call;
}
/// Ends a thread of a block that has not met and does not, as an earlier call gave up. Launches
/// that wait for all blocks to begin wait for this one, too.
[[noreturn]] static __device__ __noinline__ void exit_unmet(const LaunchPlan& plan) {
  if (threadIdx.x == blockDim.x - 1 && plan.begun != nullptr) add_relaxed(plan.begun);
  exit_thread();
}

/// Gives a signal, or waits for one.
__device__ inline void run_target(WaitState& state, const ShortTarget& target, uint64_t call) {
  const bool relaxed = target.relaxed != 0;
  if (target.waits == 0) return give_signal(target.address, relaxed);
  const uint64_t before = device::taken_before(target.slot, call);
  await_signal(state, target.address, before, relaxed, target.index, target.source);
}

/// The block that signals and waits. Not inlined: the others need not fetch its code.
template <bool kEarly>
static __device__ __noinline__ void run_targets(ShortState& state, const LaunchPlan& plan,
                                                const ShortProgram& program, uint64_t number) {
  uint64_t* const calls = plan.calls + blockIdx.x;
  uint64_t call;
  if constexpr (kEarly) {
    call = share_call(state, plan, number);
  } else {
    call = await_copied(state.call);
    meet(state, plan);
  }
  await_kernel_ahead(kEarly && plan.frees_next);
  if constexpr (!kEarly) count_call_late(calls, state.counted, plan.frees_next);
  const uint32_t left = left_by_call_ahead(calls);
  if (is_after_giving_up(call) || ahead_gave_up(left, call)) {
    if (kEarly && threadIdx.x == 0) uncount_call(calls);
    exit_thread();
  }
  for (uint32_t i = threadIdx.x; i < program.targets; i += blockDim.x) {
    run_target(state.waits, program.target[i], call);
  }
}

/// `at` and so many bytes, which may wrap around; also of an operand that no step uses.
__device__ inline uint8_t* moved_by(uint8_t* at, uint64_t bytes) {
  return reinterpret_cast<uint8_t*>(reinterpret_cast<uintptr_t>(at) + bytes);
}
/// Where an operand of this block lies in copy 0. `late`: how many blocks after the turn.
__device__ inline uint8_t* address_of(const ShortOperand& operand, uint32_t late) {
  return moved_by(operand.address, blockIdx.x * operand.apart - uint64_t{late} * operand.shrink);
}
/// From there to where it lies in call `call`.
__device__ inline uint64_t to_copy(const ShortOperand& operand, uint64_t call) {
  return uint64_t{(static_cast<uint32_t>(call) & 1) * operand.stride} * device::kCopyLine;
}
__device__ inline uint32_t late_by(const ShortProgram& program) {
  return blockIdx.x > program.turn ? blockIdx.x - program.turn : 0;
}
/// What a step says, read at once: fields that are asked for one by one, as they are needed, are
/// waited for one by one.
__device__ inline ShortHead load_head(const ShortStep& step) {
  const uint4 words = *reinterpret_cast<const uint4*>(&step.head);
  ShortHead head;
  static_assert(sizeof words == sizeof head);
  memcpy(&head, &words, sizeof head);
  return head;
}

/// Unit `unit` of a source of `step` has not come; ends the thread.
template <PacketFormat F>
[[noreturn]] static __device__ __noinline__ void give_up_short(WaitState& state,
                                                               const ShortStep& step, uint32_t late,
                                                               uint32_t unit, uint32_t element,
                                                               uint64_t call) {
  const Stamp stamp = device::stamp_of(call, element);
  const uint32_t op = step.head.source + blockIdx.x * step.head.source_apart;
  const auto unit_of = [&](uint32_t j) -> const uint8_t* {
    if ((step.head.from_packets >> j & 1) == 0) return nullptr;
    return address_of(step.operands[j], late) + to_copy(step.operands[j], call) +
           uint64_t{unit} * Format<F>::kWire;
  };
  give_up(state,
          missing_packet<F>(op, Format<F>::stamp(stamp), stamp.word, step.head.srcs, unit_of));
}

/// `kMax`: short_side() of the programs. `kEarly`: for launches that may begin early, where the
/// kernel ahead hides what comes before it has ended; else for those that may not.
template <class Arithmetic, PacketFormat F, uint32_t kMax, bool kEarly>
class ShortBlock {
  using Rows = PacketRows<F, false, false, kMax>;
  using Part = typename Rows::Part;
  using Addresses = typename Rows::Addresses;
  /// A row of each source.
  struct Data {
    uint4 rows[kMax];
  };

 public:
  __device__ ShortBlock(ShortState& state, const LaunchPlan& plan, const ShortProgram& program)
      : state_(state), plan_(plan), program_(program), arithmetic_(plan), late_(late_by(program)) {}

  /// `parameters`: the launch's. It makes no stamps: launches with stamps are other kernels'.
  __device__ void run(const uint32_t* parameters) {
    uint64_t* const calls = plan_.calls + blockIdx.x;
    const uint64_t number = ask_call<kEarly>(state_, calls);
    const uint32_t asked = kEarly ? 0 : ask_parameters(parameters);
    if (blockIdx.x >= program_.blocks) {
      return run_targets<kEarly>(state_, plan_, program_, number);
    }
    const ShortStep& first = program_.step[0];
    const ShortHead head = load_head(first);
    const ShortRange range = range_of(first);
    Part part;
    const bool puts = program_.puts != 0 && find_part(range, threadIdx.x, part);
    Bases to;
    // Ahead of the first data, and of its wait for the kernel ahead, where there is time; else
    // beside it: where it goes to, and the number of the call.
    if constexpr (kEarly) find_bases(first.operands + kMax, to);
    if constexpr (kEarly) call_ = share_call(state_, plan_, number);
    await_kernel_ahead(kEarly && plan_.frees_next);
    if constexpr (kEarly) ahead_ = left_by_call_ahead(calls);
    Data data;
    if (puts) load_plain(first, head, part, data);
    if constexpr (!kEarly) {
      find_bases(first.operands + kMax, to);
      call_ = await_copied(state_.call);
    }
    if (is_after_giving_up(call_)) {
      if constexpr (!kEarly) exit_unmet(plan_);
      if (threadIdx.x == 0) uncount_call(calls);
      exit_thread();
    }
    stamp_ = device::stamp_of(call_, arithmetic_.element());
    if (puts) {
      check_call_ahead();
      if (kEarly && head.frees_next != 0 && threadIdx.x == 0) let_next_begin();
      move_bases(first.operands + kMax, to);
      finish_put(first, head, to, part, data);
      for (uint32_t i = threadIdx.x + blockDim.x; find_part(range, i, part); i += blockDim.x) {
        load_plain(first, head, part, data);
        finish_put(first, head, to, part, data);
      }
    }
    if constexpr (!kEarly) {
      state_.asked[threadIdx.x / 32] = asked;
      meet(state_, plan_);
      count_call_late(calls, state_.counted,
                      plan_.frees_next || (program_.puts != 0 && head.frees_next != 0));
    }
#pragma unroll 1
    for (uint32_t s = program_.puts; s < program_.steps; ++s) run_step(program_.step[s]);
  }

 private:
  /// Where the operands on one side of a step begin for this block.
  struct Bases {
    uint8_t* at[kMax];
  };

  /// Ends the thread if the call ahead gave up, which the number of a call that began after its end
  /// has said. Comes before the first store.
  __device__ void check_call_ahead() const {
    if (kEarly && ahead_gave_up(ahead_, call_)) exit_thread();
  }

  /// The packets of a step have come, so all ranks that this launch depends on have begun: the next
  /// one may begin, once the call is counted. If it is not, the next one waits for the block's end.
  __device__ void free_next(const ShortHead& head) const {
    if (head.frees_next == 0 || threadIdx.x != 0) return;
    if (kEarly || state_.counted != 0) let_next_begin();
  }

  __device__ ShortRange range_of(const ShortStep& step) const {
    return blockIdx.x < program_.turn ? step.range : step.late;
  }
  /// Part `i` of a range, counted over units; false: there are fewer.
  __device__ static bool find_part(const ShortRange& range, uint32_t i, Part& part) {
    const uint32_t end = range.end * Rows::kLanes;
    i += range.begin * Rows::kLanes;
    if (i >= end) return false;
    part = Rows::part_of(i, end, range.length);
    return true;
  }

  // Of as many as there may be: a branch for each would have its parameters asked for one after the
  // other. What no step uses may be anything.
  __device__ void find_bases(const ShortOperand* operands, Bases& bases) const {
#pragma unroll
    for (uint32_t j = 0; j < kMax; ++j) bases.at[j] = address_of(operands[j], late_);
  }
  /// From copy 0 to that of the call.
  __device__ void move_bases(const ShortOperand* operands, Bases& bases) const {
#pragma unroll
    for (uint32_t j = 0; j < kMax; ++j) {
      bases.at[j] = moved_by(bases.at[j], to_copy(operands[j], call_));
    }
  }
  /// Where a part lies in operands; bit j of `packets`: operand j holds packets.
  __device__ static Addresses addresses_of(const Bases& bases, uint32_t packets, const Part& part) {
    Addresses found;
    found.packets = packets;
#pragma unroll
    for (uint32_t j = 0; j < kMax; ++j) {
      found.at[j] =
          moved_by(bases.at[j], found.holds_packets(j) ? Rows::slot_offset(part) : part.offset);
    }
    return found;
  }

  /// Is source `j` plain data?
  __device__ static bool is_plain(const ShortHead& head, uint32_t j) {
    return j < head.srcs && (head.from_packets >> j & 1) == 0;
  }
  /// Plain data has one copy, so it is where it is in all calls.
  __device__ void load_plain(const ShortStep& step, const ShortHead& head, const Part& part,
                             Data& data) const {
#pragma unroll
    for (uint32_t j = 0; j < kMax; ++j) {
      data.rows[j] = {};
      if (!is_plain(head, j)) continue;
      data.rows[j] = Rows::load_part(address_of(step.operands[j], late_) + part.offset, part);
    }
  }
  __device__ void make_sendable(const ShortHead& head, Data& data) const {
    Rows::make_sendable(head.from_packets, head.srcs, arithmetic_.element(), data.rows);
  }

  /// Stores what the first step has loaded of a part, where it reads no packets.
  __device__ void finish_put(const ShortStep& step, const ShortHead& head, const Bases& to,
                             const Part& part, Data& data) const {
    make_sendable(head, data);
    write(step, head, addresses_of(to, head.to_packets, part), part, data);
  }

  __device__ void run_step(const ShortStep& step) {
    const ShortHead head = load_head(step);
    const ShortRange range = range_of(step);
    if (gave_up(state_.waits)) exit_thread();
    uint32_t divisor = 1;
    if (head.averages != 0) {
      divisor = plan_.contributions;
      asm volatile("" : "+r"(divisor));  // or all would ask for it, once their packets have come
    }
    Bases from, to;
    find_bases(step.operands, from);
    move_bases(step.operands, from);
    find_bases(step.operands + kMax, to);
    move_bases(step.operands + kMax, to);
    Part part;
#pragma unroll 1
    for (uint32_t i = threadIdx.x; find_part(range, i, part); i += blockDim.x) {
      const Addresses sources = addresses_of(from, head.from_packets, part);
      const Addresses targets = addresses_of(to, head.to_packets, part);
      Data data;
      Rows::read(
          state_.waits, stamp_, sources, head.srcs, part, data.rows, [] {},
          [&] {
            give_up_short<F>(state_.waits, step, late_, part.unit, arithmetic_.element(), call_);
          });
      check_call_ahead();
      if constexpr (kEarly) free_next(head);
      if (Arithmetic::kSums && head.adds != 0) {
        if constexpr (Arithmetic::kSums) data.rows[0] = sum(head, divisor, data);
      } else {
        make_sendable(head, data);
      }
      write(step, head, targets, part, data);
      if constexpr (!kEarly) free_next(head);
      Rows::empty(stamp_, sources);
    }
  }

  __device__ void write(const ShortStep& step, const ShortHead& head, const Addresses& to,
                        const Part& part, const Data& data) const {
#pragma unroll
    for (uint32_t j = 0; j < kMax; ++j) {
      if (j >= head.dsts) continue;
      const uint4 row = head.pairs != 0 ? data.rows[j] : data.rows[0];
      Rows::write_one(stamp_, to, j, part, row, moved_from(step, head, to, j, part));
    }
  }
  /// Where the row of a plain destination lies, if it is plain data that is only moved.
  __device__ const uint8_t* moved_from(const ShortStep& step, const ShortHead& head,
                                       const Addresses& to, uint32_t j, const Part& part) const {
    const uint32_t source = head.pairs != 0 ? j : 0;
    if (to.holds_packets(j) || head.adds != 0 || !is_plain(head, source)) return nullptr;
    return address_of(step.operands[source], late_) + part.offset;
  }

  __device__ uint4 sum(const ShortHead& head, uint32_t divisor, const Data& data) const {
    typename Arithmetic::RowSums sums;
#pragma unroll
    for (uint32_t j = 0; j < kMax; ++j) {
      const uint4 row = data.rows[j];
      if (j < head.srcs) add_to<Arithmetic>(sums, row, j == 0);
    }
    return Arithmetic::finish(sums, divisor);
  }

  ShortState& state_;
  const LaunchPlan& plan_;
  const ShortProgram& program_;
  const Arithmetic arithmetic_;
  const uint32_t late_;  ///< how many blocks after the turn this one is
  uint64_t call_ = 0;
  uint32_t ahead_ = 0;  ///< left_by_call_ahead(), where that is not known from call_
  Stamp stamp_;
};

}  // namespace mscclc::cuda
