// What all machines of a CUDA thread block have in common: the numbers of the call, and the ops
// that synchronise (interpreter/machine.h says what a machine offers).
#pragma once

#include <cstdint>

#include "executor/cuda/device/access.cuh"
#include "executor/cuda/device/ahead.cuh"
#include "executor/cuda/device/clocks.cuh"
#include "executor/cuda/device/flags.cuh"
#include "executor/cuda/device/ports.cuh"
#include "executor/cuda/device/signals.cuh"
#include "executor/cuda/device/wait.cuh"
#include "executor/interpreter/steps.h"

namespace mscclc::cuda {

using device::Barrier;
using device::Format;
using device::LaunchPlan;
using device::Piece;
using device::RankContext;
using device::Source;
using device::Step;
using device::StepFamily;
using device::StepKind;
using device::StepTarget;

/// What the threads of a block share, in shared memory.
struct BlockState : BlockClock {
  WaitState waits;
  const RankContext* rank;
  uint64_t* calls;                      ///< the block's counts in device memory (LaunchPlan) ...
  uint32_t divisor;                     ///< of sums, where the call asks for an average; else 1
  uint64_t counts[device::kMaxCounts];  ///< ... and as they are now
  volatile uint32_t counted;            ///< compiled kernels: not 0 once the call is counted

  /// What one thread fills in, except the counts. `own`: the block's in device memory.
  __device__ __forceinline__ void begin(const LaunchPlan& plan, uint64_t* own) {
    rank = plan.context;
    calls = own;
    divisor = plan.reduce == ReduceOp::avg ? plan.contributions : 1;
    waits = wait_state(plan, counts[0]);
  }
};

/// `kHasProxy`: steps may post to the rank's proxy.
template <class Arithmetic, bool kHasProxy>
class BlockBase {
 public:
  /// Call number `call` of the block.
  __device__ BlockBase(BlockState& state, const LaunchPlan& plan, uint64_t call)
      : state_(state),
        plan_(plan),
        call_(call),
        arithmetic_(plan),
        stamp_(device::stamp_of(call, arithmetic_.element())) {}

  __device__ void enter(const Step& step) {
    state_.stamp_clock(plan_, static_cast<uint32_t>(step.kind), step.source);
    if (frees_next_) let_next_begin();
    frees_next_ = threadIdx.x == 0 && (step.flags & device::kFreesNext) != 0;
    source_ = step.source;
    keep_published(step.kind, (step.flags & device::kPosts) != 0);
    if (gave_up(state_.waits)) exit_thread();
  }
  __device__ uint64_t call() const { return call_; }
  __device__ uint32_t element() const { return arithmetic_.element(); }

  template <class Fn>
  __device__ void for_each_target(uint32_t n, Fn fn) {
    for_each_target(n, false, fn);
  }

  template <class Fn>
  __device__ void for_each_post(uint32_t n, Fn fn) {
    for_each_target(n, true, fn);
  }

  /// Calls fn(i) for each of `n` targets, by a thread each; where they are posted by one, in order.
  /// One loop, or kernels would hold its body twice.
  template <class Fn>
  __device__ __forceinline__ void for_each_target(uint32_t n, bool posts, Fn fn) {
    const uint32_t first = posts && threadIdx.x != 0 ? n : threadIdx.x;
    const uint32_t apart = posts ? 1 : blockDim.x;
#pragma unroll 1
    for (uint32_t i = first; i < n; i += apart) fn(i);
  }

  /// What a target of a step that signals or waits is for; steps of other families have none.
  __device__ __forceinline__ void synchronise(StepKind kind, const StepTarget& target,
                                              bool relaxed) {
    static_assert(device::kinds_of(StepFamily::target) == 4);
    if (kind == StepKind::signal) signal(target, relaxed);
    if (kind == StepKind::wait) wait(target, relaxed);
    if (kind == StepKind::release) release(target);
    if (kind == StepKind::acquire) acquire(target);
  }

  __device__ void signal(const StepTarget& target, bool relaxed) {
    if constexpr (kHasProxy) {
      if (target.flags & device::kPort) {
        return post({PortWhat::signal, target.index}, !relaxed);
      }
    }
    if (target.address != nullptr) give_signal(target.address, relaxed);
  }
  /// Several threads may wait at one end, each for a signal of its own.
  __device__ void wait(const StepTarget& target, bool relaxed) {
    const uint64_t before = take_one(target);
    await_signal(state_.waits, target.address, before, relaxed, target.index, source_);
  }
  template <class ChannelOf>
  __device__ void flush(uint32_t n, ChannelOf channel_of) {
    if (threadIdx.x != 0) return;
    flush_channels(state_.rank->queue, state_.waits, source_, n, channel_of);
  }
  __device__ void release(const StepTarget& target) { add_release_gpu(target.address); }
  __device__ void acquire(const StepTarget& target) {
    await(
        state_.waits,
        [&] {
          const uint64_t seen = load_relaxed_gpu(target.address);
          return seen > 0 && take_acquire_gpu(target.address, seen);
        },
        [&] { return Fault{WaitFor::semaphore, target.index, source_, 0, 1, 0}; });
  }
  __device__ void meet(const StepTarget& target) {
    Barrier& b = *reinterpret_cast<Barrier*>(target.address);
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
          [&] { return Fault{WaitFor::barrier, target.index, source_, 0, full, arrived}; });
    }
    __syncthreads();
  }
  __device__ void sync() { meet_in_block(); }
  __device__ void await_flag(const StepTarget& target) {
    await_complete(state_.waits, target, call_, source_);
  }
  __device__ void notify_flag(const StepTarget& target) { raise(target); }

 protected:
  __device__ ReduceOp reduction(const Step& step) const {
    return step.reduce == ReduceOp::call ? plan_.reduce : step.reduce;
  }
  /// What the sums of a step are divided by.
  __device__ uint32_t divisor(const Step& step) const {
    const bool divides = reduction(step) == ReduceOp::avg && (step.flags & device::kComplete) != 0;
    return divides ? plan_.contributions : 1;
  }
  /// What sums are divided by whose reduction is the call's. `flags`: of the step.
  __device__ __forceinline__ uint32_t divisor_of_call(uint32_t flags) const {
    return (flags & device::kComplete) != 0 ? state_.divisor : 1;
  }
  /// A step begins: what is published stays so over those that only post.
  __device__ void keep_published(StepKind kind, bool posts) {
    published_ &= posts && kind != StepKind::forward_packets;
  }
  /// `publishes`: what the block wrote before. Requests that follow one another do so once.
  __device__ void post(const PortRequest& request, bool publishes = true) {
    post_request(state_.rank->queue, state_.waits, source_, request, publishes && !published_);
    published_ = published_ || publishes;
  }

  /// Hands a move to the proxy, which reads the source later. By one thread.
  __device__ __forceinline__ void post_move(PortWhat what, uint32_t channel, uint8_t* to,
                                            const uint8_t* from, uint64_t bytes) {
    post({what, channel, reinterpret_cast<uint64_t>(to), reinterpret_cast<uint64_t>(from), bytes});
  }

  BlockState& state_;
  const LaunchPlan& plan_;
  const uint64_t call_;
  const Arithmetic arithmetic_;
  const device::Stamp stamp_;
  uint32_t source_ = 0;      ///< of the step at hand: the op's index in the IR
  bool frees_next_ = false;  ///< after that step this thread lets the next launch begin
  bool published_ = false;   ///< since its last fence this thread has only posted

 private:
  /// Takes a signal of those that arrive at an end; returns how many were taken before.
  __device__ uint64_t take_one(const StepTarget& target) {
    if ((target.flags & device::kCounted) != 0) return device::taken_before(target.slot, call_);
    const bool own = target.slot != device::kNoSlot;
    uint64_t* count = own ? state_.calls + target.slot : &state_.rank->channels[target.index].taken;
    auto* words = reinterpret_cast<unsigned long long*>(count);
    if (!own) return atomicAdd(words, 1ull);
    atomicAdd(words, 1ull);  // for the next call; nothing waits for it
    return atomicAdd(reinterpret_cast<unsigned long long*>(&state_.counts[target.slot]), 1ull);
  }
  /// The next multiple of `step` above `count`.
  __device__ static uint64_t next_multiple(uint64_t count, uint64_t step) {
    if (count >> 32 == 0 && step >> 32 == 0) {  // a short division
      return (static_cast<uint32_t>(count) / static_cast<uint32_t>(step) + 1) * step;
    }
    return (count / step + 1) * step;
  }
};

}  // namespace mscclc::cuda
