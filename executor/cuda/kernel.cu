// The interpreter kernel: the shared interpreter, instantiated for the data types that are asked
// for most, and once for all others.
#include <cuda_runtime.h>

#include "executor/cuda/block.cuh"
#include "executor/cuda/kernel.h"
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
__global__ void __launch_bounds__(kMostThreads) interpret(const __grid_constant__ LaunchPlan plan) {
  __shared__ WaitState waits;
  const bool alone = plan.rank_of_block == nullptr;
  const RankContext& rank = plan.contexts[alone ? 0 : plan.rank_of_block[blockIdx.x]];
  const uint32_t block = alone ? blockIdx.x : plan.number_of_block[blockIdx.x];
  if (threadIdx.x == 0) waits = {rank.abort, rank.faults + block, plan.patience, 0};
  __syncthreads();
  CudaBlock<Arithmetic> machine(rank, plan, waits);
  const device::Frame frame{rank.view};
  const uint32_t first = rank.block_begin[block];
  device::run_ops(machine, frame, rank.view.ops + first, rank.block_begin[block + 1] - first);
  end_call(rank);
}

using Kernel = void (*)(LaunchPlan);

Kernel kernel_for(const LaunchPlan& plan) {
  switch (plan.dtype) {
    case Dtype::f32:
      return interpret<OneType<Dtype::f32>>;
    case Dtype::f16:
      return interpret<OneType<Dtype::f16>>;
    case Dtype::bf16:
      return interpret<OneType<Dtype::bf16>>;
    default:
      return interpret<AnyType>;
  }
}

// Packet lines are shared by 8 lanes, and waits by whole warps.
bool threads_fit(uint32_t threads) {
  return threads != 0 && threads % 32 == 0 && threads <= kMostThreads;
}

}  // namespace

int launch(const LaunchPlan& plan, void* stream) {
  if (!threads_fit(plan.threads)) return cudaErrorInvalidConfiguration;
  void* arguments[] = {const_cast<LaunchPlan*>(&plan)};
  return cudaLaunchKernel(reinterpret_cast<const void*>(kernel_for(plan)), dim3(plan.blocks),
                          dim3(plan.threads), arguments, 0, static_cast<cudaStream_t>(stream));
}

uint32_t most_resident_blocks(const LaunchPlan& plan, int* error) {
  int device = 0, processors = 0, blocks = 0;
  *error = threads_fit(plan.threads) ? cudaGetDevice(&device) : cudaErrorInvalidConfiguration;
  if (*error != cudaSuccess) return 0;
  *error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  if (*error != cudaSuccess) return 0;
  *error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      &blocks, reinterpret_cast<const void*>(kernel_for(plan)), static_cast<int>(plan.threads), 0);
  return *error == cudaSuccess ? static_cast<uint32_t>(blocks) * processors : 0;
}

}  // namespace mscclc::cuda
