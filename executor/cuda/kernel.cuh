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
  alignas(16) uint8_t programs[device::kMostCarried];  ///< plan.carried
};
static_assert(sizeof(Arguments) <= 4096);

/// Packed programs up to this size are read from shared memory, longer ones where they lie.
inline constexpr uint32_t kMostShared = 16 * 1024;

/// A program that is not packed: what its rank's context says.
__device__ inline device::BlockHeader unpacked_header(const RankContext& rank, uint32_t block) {
  const auto at = [](const auto* array) { return reinterpret_cast<uint64_t>(array); };
  const uint32_t first = rank.block_begin[block];
  return {.ops = at(rank.view.ops + first),
          .moves = at(rank.view.moves),
          .operands = at(rank.view.operands),
          .runs = at(rank.view.runs),
          .offsets = at(rank.view.offsets),
          .loops = at(rank.view.loops),
          .targets = at(rank.view.targets),
          .bases = at(rank.bases),
          .ends = at(rank.channels),
          .channels = 0,
          .op_count = rank.block_begin[block + 1] - first,
          .align = rank.view.align};
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
  const uint64_t at = uint64_t{blockIdx.x} * plan.program_bytes;
  const uint8_t* begin = nullptr;
  if (plan.carried) {
    fetch_lines(shared_program, arguments.programs + at, plan.program_bytes);
  } else if (plan.programs != nullptr) {
    begin = plan.programs + at;
    if (plan.program_bytes <= kMostShared) fetch_lines(shared_program, begin, plan.program_bytes);
  }
  if (plan.program_bytes <= kMostShared && plan.programs != nullptr) {
    begin = reinterpret_cast<const uint8_t*>(shared_program);
  }
  fetch_context(state.rank, one ? arguments.one : *context);
  if (threadIdx.x == 0) {
    const RankContext& rank = one ? arguments.one : *context;
    state.waits = {rank.abort, rank.faults + block, plan.patience, 0};
    if (begin == nullptr) state.unpacked = unpacked_header(rank, block);
  }
  __syncthreads();
  if (threadIdx.x == 0) calls[block] = call + 1;
  const BlockProgram program = {
      begin == nullptr ? &state.unpacked : reinterpret_cast<const device::BlockHeader*>(begin),
      begin};
  CudaBlock<Arithmetic, kUses> machine(state, program, plan, call);
  const device::Frame frame{program.view()};
  device::run_ops(machine, frame, frame.rank.ops, program.header->op_count);
}

using Kernel = void (*)(Arguments);

}  // namespace mscclc::cuda
