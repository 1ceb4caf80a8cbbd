// One-shot AllReduce in LL16 packets as one kernel: every rank sends its whole input to all others
// and adds up for itself. One unit of 8 bytes a thread; all sources are polled in one loop.
#include "tools/bench/kernels/handwritten.cuh"
#include "tools/bench/kernels/kernels.h"

namespace mscclc::bench {
namespace {

__device__ uint4 packet(float2 value, uint32_t flag) {
  return {__float_as_uint(value.x), flag, __float_as_uint(value.y), flag};
}

template <uint32_t kRanks>
__global__ void __launch_bounds__(512) one_shot(__grid_constant__ const OneShot call) {
  cuda::await_kernel_ahead(true);
  const uint32_t rank = call.who.rank;
  const uint32_t epoch = call.epochs[blockIdx.x] + 1;
  const uint64_t units = (call.count + 1) / 2;
  const uint64_t half = (epoch & 1) * kRanks * call.row;
  for (uint64_t u = blockIdx.x * blockDim.x + threadIdx.x; u < units;
       u += uint64_t{gridDim.x} * blockDim.x) {
    const float2 own = load_pair(call.input, 2 * u, call.count);
    const uint4 sent = packet(own, epoch);
#pragma unroll
    for (uint32_t i = 1; i < kRanks; ++i) {
      const uint32_t peer = (rank + i) % kRanks;
      store_now(reinterpret_cast<uint4*>(call.scratch.of[peer]) + half + rank * call.row + u, sent);
    }
    const uint4* inbox = reinterpret_cast<const uint4*>(call.scratch.of[rank]) + half + u;
    uint4 got[kRanks - 1];
    Patience patience;
    bool ready = false;
    while (!ready) {
      ready = true;
#pragma unroll
      for (uint32_t i = 1; i < kRanks; ++i) {
        got[i - 1] = load_now(inbox + (rank + i) % kRanks * call.row);
      }
#pragma unroll
      for (uint32_t i = 0; i < kRanks - 1; ++i) {
        ready &= got[i].y == epoch && got[i].w == epoch;
      }
      patience.wait(ready);
    }
    store_pair(call.output, 2 * u, call.count, sum_in_rank_order<kRanks>(rank, own, got));
  }
  __syncthreads();
  if (threadIdx.x == 0) call.epochs[blockIdx.x] = epoch;
}

}  // namespace

cudaError_t launch_one_shot(const OneShot& call, cudaStream_t stream) {
  return launch_for_ranks(call.who.ranks, [&](auto ranks) {
    return launch_early(one_shot<ranks.value>, call, stream);
  });
}

}  // namespace mscclc::bench
