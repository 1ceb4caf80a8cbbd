// Signals of a channel end: how one is given, and awaited.
#pragma once

#include <cstdint>

#include "executor/cuda/device/wait.cuh"

namespace mscclc::cuda {

/// Adds one at the partner's end; unless `relaxed` it publishes what the thread saw before.
__device__ __forceinline__ void give_signal(uint64_t* count, bool relaxed) {
  if (relaxed) {
    add_relaxed(count);
  } else {
    add_release(count);
  }
}

/// Waits until more signals than `before` have arrived at an end. For reports: the channel, and the
/// op's index.
__device__ __forceinline__ void await_signal(WaitState& state, const uint64_t* count,
                                             uint64_t before, bool relaxed, uint32_t channel,
                                             uint32_t op) {
  uint64_t arrived = 0;
  await(
      state,
      [&] {
        arrived = relaxed ? load_relaxed(count) : load_acquire(count);
        return arrived > before;
      },
      [&] { return Fault{WaitFor::signal, channel, op, 0, before + 1, arrived}; });
}

}  // namespace mscclc::cuda
