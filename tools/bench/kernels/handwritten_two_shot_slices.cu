// Two-shot AllReduce for large messages as one kernel, as plans/allreduce_push.mscl has it: a block
// puts a slice of every share into the scratch of the share's owner, signals, and adds up the slice
// before of its own share, storing the sum into all outputs.
#include "tools/bench/kernels/copying.cuh"
#include "tools/bench/kernels/handwritten.cuh"
#include "tools/bench/kernels/kernels.h"

namespace mscclc::bench {
namespace {

template <uint32_t kRanks>
struct Slices {
  const TwoShotSlices& call;
  const uint32_t rank = call.who.rank;
  const uint64_t pieces = call.count / 4;  // of 16 bytes, as all here
  const uint64_t share = (pieces + kRanks - 1) / kRanks;
  const uint64_t slice = call.slice;

  __device__ uint64_t begin(uint32_t step) const {
    return (uint64_t{blockIdx.x} * call.slices + step) * slice;
  }
  /// How many pieces of a slice there are in an owner's share.
  __device__ uint64_t length(uint32_t owner, uint32_t step) const {
    const uint64_t all = owner * share < pieces ? pieces - owner * share : 0;
    const uint64_t end = all < share ? all : share, at = begin(step);
    return at >= end ? 0 : end - at < slice ? end - at : slice;
  }
  /// What `source` has sent to `owner`.
  __device__ uint4* part(uint32_t owner, uint32_t source, uint32_t step) const {
    return reinterpret_cast<uint4*>(call.scratch.of[owner]) + source * call.row + begin(step);
  }
  __device__ uint32_t* flag(uint32_t at, uint32_t source) const {
    return reinterpret_cast<uint32_t*>(call.flags.of[at]) + blockIdx.x * kRanks + source;
  }

  __device__ void push(uint32_t step) const {
    const auto* input = reinterpret_cast<const uint4*>(call.input);
#pragma unroll 1
    for (uint32_t p = 1; p < kRanks; ++p) {
      const uint32_t peer = (rank + p) % kRanks;
      copy_pieces(part(peer, rank, step), input + peer * share + begin(step), length(peer, step),
                  threadIdx.x, blockDim.x);
    }
  }
  __device__ void add_up(uint32_t step) const {
    const uint64_t count = length(rank, step), at = rank * share + begin(step);
    for (uint64_t i = threadIdx.x; i < count; i += blockDim.x) {
      uint4 got[kRanks - 1];
#pragma unroll
      for (uint32_t p = 1; p < kRanks; ++p) {
        got[p - 1] = part(rank, (rank + p) % kRanks, step)[i];
      }
      const float4 own = reinterpret_cast<const float4*>(call.input)[at + i];
      const float4 sum = sum_in_rank_order<kRanks>(rank, own, got);
#pragma unroll
      for (uint32_t p = 1; p <= kRanks; ++p) {
        reinterpret_cast<float4*>(call.outputs.of[(rank + p) % kRanks])[at + i] = sum;
      }
    }
  }
  /// Signals all peers that this block has come so far, after all that it has stored.
  __device__ void signal(uint32_t epoch) const {
    __syncthreads();
    if (threadIdx.x >= kRanks - 1) return;
    raise(flag((rank + 1 + threadIdx.x) % kRanks, rank), epoch);
  }
  __device__ void wait(uint32_t epoch) const {
    if (threadIdx.x < kRanks - 1) await(flag(rank, (rank + 1 + threadIdx.x) % kRanks), epoch);
    __syncthreads();
  }
};

template <uint32_t kRanks>
__global__ void __launch_bounds__(1024, 1)
    two_shot_slices(__grid_constant__ const TwoShotSlices call) {
  cuda::await_kernel_ahead(true);
  const Slices<kRanks> slices{call};
  const uint32_t base = call.epochs[blockIdx.x];
  for (uint32_t k = 0; k <= call.slices; ++k) {
    if (k < call.slices) {
      slices.push(k);
      slices.signal(base + k + 1);
    }
    if (k == 0) continue;
    slices.wait(base + k);
    slices.add_up(k - 1);
  }
  const uint32_t last = base + call.slices + 1;
  slices.signal(last);
  slices.wait(last);
  if (threadIdx.x == 0) call.epochs[blockIdx.x] = last;
}

}  // namespace

cudaError_t launch_two_shot_slices(const TwoShotSlices& call, cudaStream_t stream) {
  return launch_for_ranks(call.who.ranks, [&](auto ranks) {
    return launch_early(two_shot_slices<ranks.value>, call, stream);
  });
}

}  // namespace mscclc::bench
