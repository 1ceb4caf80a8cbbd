// The interpreter kernel, as a template over the machine of a block; kernel_*.cu instantiate it.
//
// A block first fetches what it will read again into shared memory, in one go: its steps, from the
// parameters of the launch or from device memory, and the number of its call. A launch that may
// begin before the end of the kernel ahead (LaunchPlan::early) does so while that one runs: no call
// changes steps, and the call ahead has counted itself before it let this one begin.
#pragma once

#include <cuda_runtime.h>

#include "executor/cuda/device/ahead.cuh"
#include "executor/cuda/device/block_base.cuh"
#include "executor/cuda/device/short.cuh"
#include "executor/cuda/kernel.h"
#include "executor/interpreter/dispatch.h"

namespace mscclc::cuda {

/// The parameters: 4 KiB at most, which cost a launch no time.
struct Arguments {
  LaunchPlan plan;
  alignas(16) uint8_t programs[device::kMaxCarried];  ///< plan.carried, or its short program
};
static_assert(sizeof(Arguments) <= 4096);
static_assert(sizeof(device::ShortProgram) <= device::kMaxCarried);

/// Programs up to this size are read from shared memory, longer ones where they lie.
inline constexpr uint32_t kMaxShared = 16 * 1024;

/// Copies 16-byte lines by all threads.
template <class From>
__device__ inline void fetch_lines(uint4* to, const From* from, uint32_t bytes) {
  for (uint32_t i = threadIdx.x; i < bytes / 16; i += blockDim.x) {
    to[i] = reinterpret_cast<const uint4*>(from)[i];
  }
}

// Not inlined: hardly any buffer has more copies than two.
static __device__ __noinline__ uint64_t copy_of(uint64_t call, uint32_t copies) {
  return call % copies;
}

/// Makes the operands of a program that is in shared memory those of a call.
__device__ inline void settle_copies(const device::Steps& program, uint32_t operands,
                                     uint64_t call) {
  for (uint32_t i = threadIdx.x; i < operands; i += blockDim.x) {
    auto& operand = const_cast<device::StepOperand&>(program.operands[i]);
    const uint32_t copies = operand.copies;
    if (copies < 2) continue;
    const uint64_t copy = copies == 2 ? call & 1 : copy_of(call, copies);
    const uint64_t offset = copy * operand.stride * device::kCopyLine;
    operand.address += offset;
    operand.copies = 1;
    if (program.extras == nullptr) continue;
    auto& multicast = const_cast<uint8_t*&>(program.extras[i].multicast);
    if (multicast != nullptr) multicast += offset;
  }
}

/// What a block does first: counts its call, and fetches its program if that is to lie in shared
/// memory. Returns where the program begins.
__device__ inline const uint8_t* begin_block(const Arguments& arguments, BlockState& state,
                                             uint4* lines) {
  const LaunchPlan& plan = arguments.plan;
  state.begin_clock(plan);
  uint64_t* const calls = plan.calls + uint64_t{blockIdx.x} * plan.call_counts;
  uint64_t call = 0;
  if (threadIdx.x == 0) {
    call = fetch_add_relaxed_gpu(calls);
    if (plan.begun != nullptr) add_relaxed(plan.begun);
  }
  const uint64_t at = uint64_t{blockIdx.x} * plan.program_bytes;
  const bool shared = plan.program_bytes <= kMaxShared;
  if (plan.carried) {
    fetch_lines(lines, arguments.programs + at, plan.program_bytes);
  } else if (shared) {
    fetch_lines(lines, plan.programs + at, plan.program_bytes);
  }
  if (threadIdx.x == 0) {
    state.begin(plan, calls);
    state.counts[0] = call;
  }
  __syncthreads();
  state.stamp_clock(plan, device::kStampProgram);
  return shared ? reinterpret_cast<const uint8_t*>(lines) : plan.programs + at;
}

/// Waits for the kernel ahead, and fetches the other counts, which it may have changed: the signals
/// that were taken. The number of the call becomes kGaveUp if that kernel gave up, or one before
/// it.
__device__ inline void fetch_counts(const LaunchPlan& plan, BlockState& state) {
  await_kernel_ahead(plan.frees_next);
  state.stamp_clock(plan, device::kStampAhead);
  if (threadIdx.x < plan.call_counts) {
    const uint64_t count = load_relaxed(state.calls + threadIdx.x);
    if (threadIdx.x != 0) {
      state.counts[threadIdx.x] = count;
    } else if (has_given_up(count)) {
      const uint64_t call = state.counts[0] & kNumber;
      state.counts[0] = gave_up_before(count, call) ? kGaveUp : call;
    }
  }
  __syncthreads();
  state.stamp_clock(plan, device::kStampCounts);
}

/// Has an earlier call given up? Then this one, with the number that fetch_counts() has left, is
/// not counted either.
__device__ inline bool is_to_do_nothing(const BlockState& state, uint64_t call) {
  if (!has_given_up(call)) return false;
  if (threadIdx.x == 0) uncount_call(state.calls);
  return true;
}

/// The machine for all plans.
template <class Block, uint32_t kThreads>
__global__ void __launch_bounds__(kThreads) interpret(const __grid_constant__ Arguments arguments) {
  MSCCLC_SHARED(BlockState, state);
  const uint8_t* begin = begin_block(arguments, state, shared_lines());
  fetch_counts(arguments.plan, state);
  const uint64_t call = state.counts[0];
  if (is_to_do_nothing(state, call)) return;
  const auto* header = reinterpret_cast<const device::StepHeader*>(begin);
  const device::Steps program(header);
  if (arguments.plan.program_bytes <= kMaxShared) {
    settle_copies(program, header->operands, call);
    __syncthreads();
  }
  Block machine(state, arguments.plan, call);
  device::run_ops(machine, program, program.steps, header->steps);
  state.end_clock(arguments.plan);
}

/// Machines whose programs lie in shared memory. Where the number of the call is all the counts,
/// nothing but data has to wait for the kernel ahead.
template <class Block, uint32_t kThreads>
__global__ void __launch_bounds__(kThreads)
    interpret_shared(const __grid_constant__ Arguments arguments) {
  MSCCLC_SHARED(BlockState, state);
  begin_block(arguments, state, shared_lines());
  const bool counts = arguments.plan.call_counts > 1;
  const bool marked = !counts && has_given_up(state.counts[0]);
  if (marked) __syncthreads();  // all have seen the mark, which fetch_counts() may take off
  if (counts || marked) fetch_counts(arguments.plan, state);
  const uint64_t call = state.counts[0];
  if (is_to_do_nothing(state, call)) return;
  Block(state, arguments.plan, call, counts).run();
  state.end_clock(arguments.plan);
}

/// The machine for short programs.
template <class Block>
__global__ void __launch_bounds__(kMaxShortThreads)
    interpret_short(const __grid_constant__ Arguments arguments) {
  MSCCLC_SHARED(ShortState, state);
  const auto& program = *reinterpret_cast<const device::ShortProgram*>(arguments.programs);
  Block(state, arguments.plan, program).run(reinterpret_cast<const uint32_t*>(&arguments));
}

#ifndef MSCCLC_ON_HOST
/// Launches a kernel with these arguments, which are copied. (The template of the CUDA runtime that
/// does so copies 4 KiB twice.)
inline cudaError_t start_kernel(const cudaLaunchConfig_t& config, void (*function)(Arguments),
                                Arguments& arguments) {
  void* parameters[] = {&arguments};
  return cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(function), parameters);
}
#endif

/// A kernel, and the threads of a block that it takes at most.
struct Kernel {
  void (*function)(Arguments) = nullptr;
  uint32_t threads = 0;
  bool takes_short = false;  ///< runs LaunchPlan::in_short, and needs no other program
  /// For launches that may begin early; nullptr: `function`, whose launches, if it takes_short, may
  /// not.
  void (*early)(Arguments) = nullptr;
};

}  // namespace mscclc::cuda
