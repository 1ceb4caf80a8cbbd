// The interpreter kernel: the shared interpreter, instantiated for the data types that are asked
// for most, and once for all others.
#include <cuda_runtime.h>

#include "executor/cuda/block.cuh"
#include "executor/interpreter/dispatch.h"

namespace mscclc::cuda {
namespace {

// The last block of a rank to end begins the rank's next call.
__device__ void end_call(const RankContext& rank) {
  __syncthreads();
  if (threadIdx.x != 0) return;
  __threadfence();
  if (atomicAdd(rank.blocks_done, 1u) + 1 != rank.blocks) return;
  *rank.blocks_done = 0;
  *rank.call += 1;
}

template <class Arithmetic>
__global__ void __launch_bounds__(512) interpret(const __grid_constant__ LaunchPlan plan) {
  const RankContext& rank = plan.contexts[plan.rank_of_block[blockIdx.x]];
  const uint32_t block = plan.number_of_block[blockIdx.x];
  CudaBlock<Arithmetic> machine(rank, plan, block);
  const device::Frame frame{rank.view};
  const uint32_t first = rank.block_begin[block];
  device::run_ops(machine, frame, rank.view.ops + first, rank.block_begin[block + 1] - first);
  end_call(rank);
}

template <class Arithmetic>
int launch_as(const LaunchPlan& plan, cudaStream_t stream) {
  void* arguments[] = {const_cast<LaunchPlan*>(&plan)};
  return static_cast<int>(
      cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(&interpret<Arithmetic>),
                                  dim3(plan.blocks), dim3(plan.threads), arguments, 0, stream));
}

}  // namespace

int launch(const LaunchPlan& plan, void* stream) {
  const auto on = static_cast<cudaStream_t>(stream);
  switch (plan.dtype) {
    case Dtype::f32:
      return launch_as<OneType<Dtype::f32>>(plan, on);
    case Dtype::f16:
      return launch_as<OneType<Dtype::f16>>(plan, on);
    case Dtype::bf16:
      return launch_as<OneType<Dtype::bf16>>(plan, on);
    default:
      return launch_as<AnyType>(plan, on);
  }
}

}  // namespace mscclc::cuda
