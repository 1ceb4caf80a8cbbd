// How a block waits: the one helper of every wait, and what happens when a wait is given up.
//
// A wait counts its polls; every few thousand it looks at the rank's abort word and at the clock.
// When it is given up, for whatever reason, the first thread of the block records what it waited
// for, and the thread exits. Exited threads are not waited for at a block's barriers, so the others
// come out of theirs, find `gave_up` set at their next op or poll, and exit too. A block that has
// given up signals and posts nothing: blocks that depend on it give up in turn, so that no
// rank takes garbage for its result. It sets the rank's abort word, so that the waits of the rank's
// other blocks end at their first look, and marks the counts of all of them: the calls queued after
// this one do nothing, also in blocks that never wait.
#pragma once

#include <cstdint>

#include "executor/cuda/device/access.cuh"
#include "executor/cuda/device/cluster.cuh"
#include "executor/launch.h"

namespace mscclc::cuda {

using device::Fault;
using device::WaitFor;

/// What the waits of a block share; in shared memory.
struct WaitState {
  const device::RankContext* rank;
  uint64_t* counts;      ///< LaunchPlan::calls
  const uint64_t* call;  ///< the number of the block's call, as it has read it: it may be marked
  uint32_t blocks, call_counts;
  uint32_t block;     ///< of the rank
  uint64_t patience;  ///< nanoseconds; 0: forever
  uint32_t gave_up;   ///< 0: it has not; kSilently, kReported
  uint64_t handled;   ///< PortQueue::handled as some block saw it last; 0: not asked in this launch
};

/// Of a block of a launch. `call`: where the number of its call lies, in shared memory.
__device__ __forceinline__ WaitState wait_state(const device::LaunchPlan& plan,
                                                const uint64_t& call) {
  return {plan.context,  plan.calls, &call, plan.blocks, plan.call_counts, block_of_rank(),
          plan.patience, 0,          0};
}

// When a block gives up in call c, the numbers of calls of all blocks of its rank are marked: with
// kGaveUp, and c in the bits below that calls do not reach in months, one each 2 us. Calls after c
// do nothing, as peers would take their signals and packets for those that are missing. Call c
// itself passes over the mark: some threads of a block may have read the number before the mark was
// there, others after. So would call c + 2^21, if graphs are replayed after a failure: calls that
// find a mark are not counted, and there is none.
inline constexpr uint64_t kGaveUp = uint64_t{1} << 63;
inline constexpr uint32_t kNumberBits = 42;
inline constexpr uint64_t kNumber = (uint64_t{1} << kNumberBits) - 1;
inline constexpr uint64_t kMarkedCall = (kGaveUp >> kNumberBits) - 1;  ///< as many bits of c

/// Is a number marked?
__device__ inline bool has_given_up(uint64_t count) { return (count & kGaveUp) != 0; }
__device__ inline uint64_t mark_of(uint64_t call) {
  return kGaveUp | (call & kMarkedCall) << kNumberBits;
}
/// Did a block of the rank give up in a call before number `call`?
__device__ inline bool gave_up_before(uint64_t count, uint64_t call) {
  return has_given_up(count) && ((count >> kNumberBits ^ call) & kMarkedCall) != 0;
}
/// The same of the number of a call, as it was read. If not, takes off a mark of this call.
__device__ __forceinline__ bool is_after_giving_up(uint64_t& call) {
  if (!has_given_up(call)) return false;
  const bool before = gave_up_before(call, call);
  call &= kNumber;
  return before;
}

/// Takes the call of a block off its count, once, as it does nothing: the number then stays where
/// it is, close to that of the call that gave up.
__device__ inline void uncount_call(uint64_t* count) {
  atomicAdd(reinterpret_cast<unsigned long long*>(count), ~0ull);
}

/// How a block has given up, as bits: because others have, or for a reason that it has recorded.
inline constexpr uint32_t kSilently = 1, kReported = 2;

/// True if the block has given up. Volatile: other threads set it at any time.
__device__ inline bool gave_up(const WaitState& state) {
  return *static_cast<const volatile uint32_t*>(&state.gave_up) != 0;
}

/// A look in a wait that began at `start` (0: the first look). 0: it is to be given up; else when
/// it began.
static __device__ __noinline__ uint64_t look(const WaitState& state, uint64_t start) {
  if (gave_up(state) || load_relaxed(state.rank->abort) != 0) return 0;
  const uint64_t now = nanoseconds();
  if (start == 0) return now;
  return state.patience == 0 || now - start < state.patience ? start : 0;
}

/// Marks the counts of all blocks of the rank, unless a call before has: its number stays.
static __device__ __noinline__ void mark_counts(const WaitState& state) {
  const uint64_t mark = mark_of(*state.call);
  for (uint32_t b = 0; b < state.blocks; ++b) {
    uint64_t* const count = state.counts + uint64_t{b} * state.call_counts;
    if (has_given_up(load_relaxed_gpu(count))) continue;
    atomicOr(reinterpret_cast<unsigned long long*>(count), mark);
  }
}

/// Records `reason`, if it is one and the block has recorded none before, and ends the thread.
[[noreturn]] static __device__ __noinline__ void give_up(WaitState& state, const Fault& reason) {
  const uint32_t how = reason.what == WaitFor::nothing ? kSilently : kReported;
  if ((atomicOr(&state.gave_up, how) & how) == 0) {
    Fault* to = state.rank->faults + state.block;
    auto* what = reinterpret_cast<volatile uint32_t*>(&to->what);
    if (how == kReported && *what == 0) {
      to->index = reason.index;
      to->op = reason.op;
      to->high = reason.high;
      to->expected = reason.expected;
      to->seen = reason.seen;
      __threadfence_system();  // the host reads the rest once it sees `what`
      *what = static_cast<uint32_t>(reason.what);
    }
    // Blocks only read the word while all is well.
    *const_cast<volatile uint32_t*>(state.rank->abort) = 1;
    mark_counts(state);
  }
  exit_block_thread();
}

/// Waits until poll() is true: the one loop that polls. Where that does not come, stop() ends the
/// thread. `together`: the threads of a warp that poll as one (a bit each) and stop together; 0:
/// each by itself.
template <class Poll, class Stop>
__device__ __forceinline__ void poll_until(WaitState& state, uint32_t together, Poll poll,
                                           Stop stop) {
  uint32_t left = kPollsPerLook;
  uint64_t start = 0;
  while (!poll()) {
    after_vain_poll();
    if (--left != 0) continue;
    start = look(state, start);
    if (together != 0 && !__all_sync(together, start != 0)) start = 0;
    if (start == 0) stop();
    left = kPollsPerLook;
  }
}

/// Waits until poll() is true. Where that does not come, gives up for reason(), a Fault.
template <class Poll, class Reason>
__device__ __forceinline__ void await(WaitState& state, Poll poll, Reason reason) {
  poll_until(state, 0, poll, [&] { give_up(state, reason()); });
}

}  // namespace mscclc::cuda
