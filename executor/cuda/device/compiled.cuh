// How a kernel that was compiled for one plan begins (executor/compiled/emit.h writes the rest). It
// has no program to fetch, and its threads meet only once they have sent what they can: each asks
// for the call's number itself, and for its first data before that has come. The number goes to
// shared memory: what a thread waits for is known by groups of its loads, and it would have either
// only when both have come.
#pragma once

#include "executor/cuda/device/compiled_block.cuh"

namespace mscclc::cuda {

/// The second parameter: lines of shared and of blocks' own sizes and addresses.
template <uint32_t kLines>
struct CompiledArguments {
  uint4 lines[kLines];
};

/// The second parameter of a kernel that has too many of them: where they are (LaunchPlan::programs
/// is to the interpreter what they are here).
struct CompiledMemory {
  const uint4* lines;
};

/// How many signals the block has taken, by slot (WaitSlots). Seen by all threads once they have
/// met to count the call.
__device__ __forceinline__ void fetch_taken(const LaunchPlan& plan, BlockState& state,
                                            const uint64_t* calls) {
  if (threadIdx.x == 0 || threadIdx.x >= plan.call_counts) return;
  state.counts[threadIdx.x] = load_relaxed_gpu(calls + threadIdx.x);
}

/// The lines of all blocks, and then those of one.
template <uint32_t kShared, uint32_t kOwn>
struct CompiledLines {
  uint4 lines[kShared + kOwn];
};

/// Fetches them, for this block, into shared memory. Calls do not change them, so that the kernel
/// ahead may still run.
template <uint32_t kShared, uint32_t kOwn>
__device__ __forceinline__ void fetch_arguments(const uint4* from,
                                                CompiledLines<kShared, kOwn>& to) {
  const uint4* own = from + kShared + uint64_t{block_of_rank()} * kOwn;
#pragma unroll 1
  for (uint32_t i = threadIdx.x; i < kShared + kOwn; i += blockDim.x) {
    to.lines[i] = i < kShared ? from[i] : own[i - kShared];
  }
  __syncthreads();
}

/// Runs this block's part of a call: lead(block) has the steps that come before the block has
/// counted it, run(block) the others.
template <class Block, class Lead, class Run>
__device__ __forceinline__ void run_compiled(const LaunchPlan& plan, const uint4* shared,
                                             const uint4* own, Lead lead, Run run) {
  MSCCLC_SHARED(BlockState, state);
  if (thread_of_block() == 0 && plan.begun != nullptr) add_relaxed(plan.begun);
  await_kernel_ahead(false);
  uint64_t* const calls = plan.calls + uint64_t{block_of_rank()} * plan.call_counts;
  copy_to_shared(state.counts, calls);
  if (threadIdx.x == blockDim.x - 1) {
    state.counted = 0;
    state.begin(plan, calls);
    if constexpr (kHasClusters) prepare(shared_floats());
  }
  if constexpr (Block::kCounts) fetch_taken(plan, state, calls);
  Block first(state, plan, 0, shared, own);
  lead(first);
  Block block(state, plan, first.late_call(), shared, own);
  block.count_call(first);
  run(block);
}

}  // namespace mscclc::cuda
