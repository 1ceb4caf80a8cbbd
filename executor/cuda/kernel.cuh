// The interpreter kernel, as a template over the arithmetic and over what plans use; kernel_*.cu
// instantiate it.
//
// A block first fetches all that it will read again into shared memory, in one go: its rank's
// context and its packed program, from the parameters of the launch or from device memory.
#pragma once

#include <cuda_runtime.h>

#include "executor/cuda/block.cuh"
#include "executor/cuda/kernel.h"
#include "executor/interpreter/dispatch.h"

namespace mscclc::cuda {

/// The parameters: 4 KiB at most, which cost a launch no time.
struct Arguments {
  LaunchPlan plan;
  RankContext one;
  alignas(16) uint8_t programs[kMostCarried];  ///< plan.carried
};
static_assert(sizeof(Arguments) <= 4096);

/// Packed programs up to this size are read from shared memory, longer ones where they lie.
inline constexpr uint32_t kMostShared = 16 * 1024;

template <class T>
__device__ inline const T* array_at(const uint8_t* program, uint32_t offset) {
  return reinterpret_cast<const T*>(program + offset);
}

__device__ inline void find_program(BlockState& state, const uint8_t* program) {
  const device::BlockHeader& header = *array_at<device::BlockHeader>(program, 0);
  state.ops = array_at<device::DeviceOp>(program, header.ops);
  state.op_count = header.op_count;
  state.bases = array_at<BaseAddress>(program, header.bases);
  state.ends = array_at<ChannelEnd>(program, header.ends);
  state.channels = array_at<uint32_t>(program, header.channels);
  state.view = {state.ops,
                array_at<device::Move>(program, header.moves),
                array_at<device::DeviceOperand>(program, header.operands),
                array_at<device::Run>(program, header.runs),
                array_at<uint64_t>(program, header.offsets),
                array_at<device::DeviceLoop>(program, header.loops),
                array_at<uint32_t>(program, header.targets),
                header.align};
}

/// A program that is not packed: what its rank's context says.
__device__ inline void find_unpacked(BlockState& state, uint32_t block) {
  const uint32_t first = state.rank.block_begin[block];
  state.ops = state.rank.view.ops + first;
  state.op_count = state.rank.block_begin[block + 1] - first;
  state.bases = state.rank.bases;
  state.ends = state.rank.channels;
  state.channels = nullptr;
  state.view = state.rank.view;
}

/// Copies 16-byte lines by all threads.
template <class To, class From>
__device__ inline void fetch_lines(To* to, const From* from, uint32_t bytes) {
  auto* lines = reinterpret_cast<uint4*>(to);
  for (uint32_t i = threadIdx.x; i < bytes / 16; i += blockDim.x) {
    lines[i] = reinterpret_cast<const uint4*>(from)[i];
  }
}

/// Copies 8-byte words by all threads.
__device__ inline void fetch_context(RankContext& to, const RankContext& from) {
  static_assert(sizeof(RankContext) % 8 == 0);
  auto* words = reinterpret_cast<uint64_t*>(&to);
  for (uint32_t i = threadIdx.x; i < sizeof to / 8; i += blockDim.x) {
    words[i] = reinterpret_cast<const uint64_t*>(&from)[i];
  }
}

template <class Arithmetic, uint32_t kUses>
__global__ void __launch_bounds__(kMostThreads)
    interpret(const __grid_constant__ Arguments arguments) {
  __shared__ BlockState state;
  extern __shared__ uint4 shared_program[];
  const LaunchPlan& plan = arguments.plan;
  const bool one = plan.one != nullptr;
  const uint32_t block =
      one || plan.number_of_block == nullptr ? blockIdx.x : plan.number_of_block[blockIdx.x];
  const RankContext* context =
      one ? nullptr : plan.contexts + (plan.rank_of_block ? plan.rank_of_block[blockIdx.x] : 0);
  // All threads read the number of the call before the first of them advances it.
  uint64_t* const calls = one ? arguments.one.calls : context->calls;
  const uint64_t call = load_relaxed(calls + block);
  const bool shared = plan.programs != nullptr && plan.program_bytes <= kMostShared;
  const uint64_t at = uint64_t{blockIdx.x} * plan.program_bytes;
  const uint8_t* program = nullptr;
  if (plan.carried) {
    fetch_lines(shared_program, arguments.programs + at, plan.program_bytes);
  } else if (shared) {
    fetch_lines(shared_program, plan.programs + at, plan.program_bytes);
  } else if (plan.programs != nullptr) {
    program = plan.programs + at;
  }
  if (one) {
    fetch_context(state.rank, arguments.one);
  } else {
    fetch_context(state.rank, *context);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    calls[block] = call + 1;
    if (shared) program = reinterpret_cast<const uint8_t*>(shared_program);
    if (program != nullptr) {
      find_program(state, program);
    } else {
      find_unpacked(state, block);
    }
    state.waits = {state.rank.abort, state.rank.faults + block, plan.patience, 0};
  }
  __syncthreads();
  CudaBlock<Arithmetic, kUses> machine(state, plan, call);
  device::run_ops(machine, device::Frame{state.view}, state.ops, state.op_count);
}

using Kernel = void (*)(Arguments);

}  // namespace mscclc::cuda
