// How a kernel that was compiled for one plan begins (executor/special/emit.h writes the rest). It
// has no program to fetch, and its threads meet only once they have sent what they can: each takes
// the call's number from memory itself, while its first loads of data are under way.
#pragma once

#include "executor/cuda/device/special_block.cuh"

namespace mscclc::cuda {

/// The second parameter: lines of shared and of blocks' own sizes and addresses.
template <uint32_t kLines>
struct SpecialArguments {
  uint4 lines[kLines];
};

/// Runs this block's part of a call: run(block) has its steps.
template <class Block, class Run>
__device__ __forceinline__ void run_special(const LaunchPlan& plan, const uint4* shared,
                                            const uint4* own, Run run) {
  __shared__ BlockState state;
  if (threadIdx.x == 0 && plan.begun != nullptr) add_relaxed(plan.begun);
  await_kernel_ahead(false);
  uint64_t* const calls = plan.calls + blockIdx.x;
  const uint64_t call = load_relaxed_gpu(calls);
  if (threadIdx.x == 0) {
    state.rank = plan.context;
    state.calls = calls;
    state.divisor = plan.reduce == ReduceOp::avg ? plan.contributions : 1;
    state.waits = {plan.context, calls, blockIdx.x, plan.patience, 0, 0};
  }
  if (has_given_up(call)) return;
  Block block(state, plan, call, shared, own);
  run(block);
}

}  // namespace mscclc::cuda
