// Flags that the caller gives: how a block waits for one that other work of its GPU raises, and
// raises one for it (docs/design/overlap.md).
#pragma once

#include <cstdint>

#include "executor/cuda/device/wait.cuh"
#include "executor/interpreter/handlers_flags.h"

namespace mscclc::cuda {

/// A flag's word, and what its other side published by it.
__device__ __forceinline__ uint64_t load_flag(const uint64_t* word, bool wide, bool of_system) {
  const auto* narrow = reinterpret_cast<const uint32_t*>(word);
  if (wide) return of_system ? load_acquire(word) : load_acquire_gpu(word);
  return of_system ? load_acquire(narrow) : load_acquire_gpu(narrow);
}

/// Waits until a flag is complete in a call. For reports: the op's index.
__device__ __forceinline__ void await_complete(WaitState& state, const device::StepTarget& target,
                                               uint64_t call, uint32_t op) {
  const bool wide = (target.flags & device::kWideFlag) != 0;
  const bool of_system = (target.flags & device::kSystemFlag) != 0;
  const uint64_t goal = device::flag_goal(target.index, call);
  uint64_t word = 0;
  await(
      state,
      [&] {
        word = load_flag(target.address, wide, of_system);
        return device::is_complete(word, goal, wide);
      },
      [&] {
        return Fault{WaitFor::flag, device::flag_number_of(target.index), op, 0, goal, word};
      });
}

/// Raises a flag: publishes what the thread saw before.
__device__ __forceinline__ void raise(const device::StepTarget& target) {
  const bool of_system = (target.flags & device::kSystemFlag) != 0;
  auto* narrow = reinterpret_cast<uint32_t*>(target.address);
  if ((target.flags & device::kWideFlag) != 0) {
    if (of_system) {
      add_release(target.address);
    } else {
      add_release_gpu(target.address);
    }
  } else if (of_system) {
    add_release(narrow);
  } else {
    add_release_gpu(narrow);
  }
}

}  // namespace mscclc::cuda
