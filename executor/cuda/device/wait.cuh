// How a block waits: the one helper of every wait, and what happens when a wait is given up.
//
// A wait counts its polls; every few thousand it looks at the rank's abort word and at the clock.
// When it is given up, for whatever reason, the first thread of the block records what it waited
// for, and the thread exits. Exited threads are not waited for at a block's barriers, so the others
// come out of theirs, find `gave_up` set at their next op or poll, and exit too. A block that has
// given up signals and posts nothing: blocks that depend on it give up in turn, so that no
// rank takes garbage for its result. It sets the rank's abort word, so that calls queued after
// this one give up at once, and leave the first report of each block as it is.
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
  uint64_t* calls;    ///< the block's, in device memory
  uint32_t block;     ///< of the rank
  uint64_t patience;  ///< nanoseconds; 0: forever
  uint32_t gave_up;
  uint64_t handled;  ///< PortQueue::handled as some block saw it last; 0: not asked in this launch
};

/// Of a block of a launch. `calls`: the block's counts.
__device__ __forceinline__ WaitState wait_state(const device::LaunchPlan& plan, uint64_t* calls) {
  return {plan.context, calls, block_of_rank(), plan.patience, 0, 0};
}

/// The number of a block's calls once it has given up, plus the calls since: they do nothing, as
/// peers would take their signals for those that are missing.
inline constexpr uint64_t kGaveUp = uint64_t{1} << 63;
__device__ inline bool has_given_up(uint64_t call) { return (call & kGaveUp) != 0; }

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

/// Records `reason` if the block has not given up before, and ends the thread.
[[noreturn]] static __device__ __noinline__ void give_up(WaitState& state, const Fault& reason) {
  if (atomicExch(&state.gave_up, 1u) == 0) {
    Fault* to = state.rank->faults + state.block;
    auto* what = reinterpret_cast<volatile uint32_t*>(&to->what);
    if (*what == 0) {
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
    *static_cast<volatile uint64_t*>(state.calls) = kGaveUp;
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
