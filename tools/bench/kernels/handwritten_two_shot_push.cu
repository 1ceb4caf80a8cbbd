// Two-shot AllReduce for large messages as one kernel. In step k a block pushes a slice of every
// share to the share's owner, and adds up the slice of step k - 1 of its own share, storing the sum
// into all outputs. Workers never fence: a spare warp raises the flags of a step once all workers
// have pushed it, and awaits the peers'.
//
// A slot of a ring is free again in time: pushing step k needs the peers' flags of step k - 2 here,
// which they raise after their sums of step k - 4. A sum goes into a peer's output only after
// that peer's flag of the same step of the same call: it is in the call, and has read what may lie
// there (in place).
#include "tools/bench/kernels/handwritten.cuh"
#include "tools/bench/kernels/kernels.h"

namespace mscclc::bench {
namespace {

// Barriers of a block; two of each kind, as steps may overlap by one.
constexpr uint32_t kPushed = 1, kArrived = 3, kEnded = 5;
constexpr uint32_t kPerThread = 2;  // 16-byte pieces of a slice

__device__ void arrive(uint32_t barrier) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(blockDim.x) : "memory");
}
__device__ void meet(uint32_t barrier) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(blockDim.x) : "memory");
}

template <uint32_t kRanks>
struct Push {
  const TwoShotPush& call;
  const uint32_t rank = call.who.rank;
  const uint32_t workers = blockDim.x - 32;
  const uint32_t base = call.epochs[blockIdx.x];
  const uint64_t pieces = call.count / 4;
  const uint64_t share = (pieces + kRanks - 1) / kRanks;
  const uint64_t slice = uint64_t{workers} * kPerThread;
  const uint32_t steps =
      static_cast<uint32_t>((share + slice * gridDim.x - 1) / (slice * gridDim.x));

  __device__ uint64_t place(uint32_t step, uint32_t i) const {
    return (uint64_t{step} * gridDim.x + blockIdx.x) * slice + i * workers + threadIdx.x;
  }
  __device__ bool inside(uint32_t owner, uint64_t at) const {
    return at < share && owner * share + at < pieces;
  }
  __device__ uint4* slot(uint32_t owner, uint32_t step, uint32_t source, uint32_t i) const {
    const uint64_t row =
        (uint64_t{blockIdx.x} * TwoShotPush::kRing + step % TwoShotPush::kRing) * kRanks + source;
    return reinterpret_cast<uint4*>(call.scratch.of[owner]) + row * slice + i * workers +
           threadIdx.x;
  }

  __device__ void push(uint32_t step) const {
    const auto* input = reinterpret_cast<const uint4*>(call.input);
    uint4 value[kRanks - 1][kPerThread];
#pragma unroll
    for (uint32_t p = 1; p < kRanks; ++p) {
      const uint32_t peer = (rank + p) % kRanks;
#pragma unroll
      for (uint32_t i = 0; i < kPerThread; ++i) {
        const uint64_t at = place(step, i);
        if (inside(peer, at)) value[p - 1][i] = input[peer * share + at];
      }
    }
#pragma unroll
    for (uint32_t p = 1; p < kRanks; ++p) {
      const uint32_t peer = (rank + p) % kRanks;
#pragma unroll
      for (uint32_t i = 0; i < kPerThread; ++i) {
        if (inside(peer, place(step, i))) *slot(peer, step, rank, i) = value[p - 1][i];
      }
    }
  }

  __device__ void add_up(uint32_t step) const {
#pragma unroll
    for (uint32_t i = 0; i < kPerThread; ++i) {
      const uint64_t at = place(step, i);
      if (!inside(rank, at)) continue;
      uint4 got[kRanks - 1];
#pragma unroll
      for (uint32_t p = 1; p < kRanks; ++p) {
        got[p - 1] = load_now(slot(rank, step, (rank + p) % kRanks, i));
      }
      const float4 own = reinterpret_cast<const float4*>(call.input)[rank * share + at];
      const float4 sum = sum_in_rank_order<kRanks>(rank, own, got);
#pragma unroll
      for (uint32_t p = 1; p <= kRanks; ++p) {
        reinterpret_cast<float4*>(call.outputs.of[(rank + p) % kRanks])[rank * share + at] = sum;
      }
    }
  }

  __device__ void work() const {
    for (uint32_t k = 0; k <= steps; ++k) {
      if (k < steps) {
        push(k);
        arrive(kPushed + k % 2);
      }
      if (k == 0) continue;
      meet(kArrived + (k - 1) % 2);
      add_up(k - 1);
    }
    arrive(kEnded);
  }

  /// The spare warp: a lane for each peer.
  __device__ void signal_and_wait() const {
    const uint32_t lane = threadIdx.x % 32;
    const bool has_peer = lane < kRanks - 1;
    const uint32_t peer = (rank + 1 + lane) % kRanks;
    const auto flag = [&](uint32_t at, uint32_t source) {
      return reinterpret_cast<uint32_t*>(call.flags.of[at]) + blockIdx.x * kRanks + source;
    };
    for (uint32_t k = 0; k <= steps; ++k) {
      if (k < steps) {
        meet(kPushed + k % 2);
        if (has_peer) raise(flag(peer, rank), base + k + 1);
      }
      if (k == 0) continue;
      if (has_peer) await(flag(rank, peer), base + k);
      __syncwarp();
      arrive(kArrived + (k - 1) % 2);
    }
    meet(kEnded);
    if (has_peer) {
      raise(flag(peer, rank), base + steps + 1);
      await(flag(rank, peer), base + steps + 1);
    }
  }
};

template <uint32_t kRanks>
__global__ void __launch_bounds__(1024, 1) two_shot_push(__grid_constant__ const TwoShotPush call) {
  cuda::await_kernel_ahead(true);
  const Push<kRanks> push{call};
  if (threadIdx.x < push.workers) {
    push.work();
  } else {
    push.signal_and_wait();
  }
  __syncthreads();
  if (threadIdx.x == 0) call.epochs[blockIdx.x] = push.base + push.steps + 1;
}

}  // namespace

cudaError_t launch_two_shot_push(const TwoShotPush& call, cudaStream_t stream) {
  return launch_for_ranks(call.who.ranks, [&](auto ranks) {
    return launch_early(two_shot_push<ranks.value>, call, stream);
  });
}

}  // namespace mscclc::bench
