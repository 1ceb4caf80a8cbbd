// How a block of a small kernel learns the number of its call, and counts it: by a copy to shared
// memory that goes on beside its first loads, and by an addition of its last thread.
#pragma once

#include <cstdint>

#include "executor/cuda/device/ahead.cuh"
#include "executor/cuda/device/wait.cuh"

namespace mscclc::cuda {

/// The count that this thread copies to `to` (copy_to_shared()), once it is there.
__device__ __forceinline__ uint64_t await_copied(const uint64_t& to) {
  await_copies_to_shared();
  return *static_cast<const volatile uint64_t*>(&to);
}

/// Counts a call, once all threads of the block have its number, and have met. The next launch,
/// which takes the number that it finds, may begin only then. The last thread does so: however
/// little data there is, the first ones have some, and would wait. `counted` is 1 from then on, in
/// each CUDA block.
__device__ __forceinline__ void count_call_late(uint64_t* calls, volatile uint32_t& counted,
                                                bool frees_next) {
  if (threadIdx.x != blockDim.x - 1) return;
  const bool counts = thread_of_block() == threads_of_block() - 1;
  if (counts) {
    const uint64_t call = fetch_add_relaxed_gpu(calls);
    if (gave_up_before(call, call)) {
      uncount_call(calls);
      exit_thread();
    }
  }
  counted = 1;
  if (frees_next) let_next_begin();
}

/// The upper half of a block's count, as the call ahead left it. Comes after await_kernel_ahead().
__device__ __forceinline__ uint32_t left_by_call_ahead(const uint64_t* calls) {
  return load_relaxed(reinterpret_cast<const uint32_t*>(calls) + 1);
}
/// Did the call ahead of number `call` give up, or one before it, which left such an upper half?
__device__ __forceinline__ bool ahead_gave_up(uint32_t left, uint64_t call) {
  static_assert(kNumberBits >= 32);
  return gave_up_before(uint64_t{left} << 32, call);
}

}  // namespace mscclc::cuda
