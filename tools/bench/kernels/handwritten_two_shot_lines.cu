// Two-shot AllReduce in LL128 lines as one kernel. A group of lanes sends line l of every share to
// its owner, adds up line l of its own share, hands the sum to all, and takes line l of the others'
// sums.
#include "tools/bench/kernels/handwritten_lines.cuh"
#include "tools/bench/kernels/kernels.h"

namespace mscclc::bench {
namespace {

template <uint32_t kRanks>
__global__ void __launch_bounds__(576) two_shot_lines(__grid_constant__ const TwoShotLines call) {
  cuda::await_kernel_ahead(true);
  const uint32_t rank = call.who.rank;
  const uint32_t epoch = call.epochs[blockIdx.x] + 1;
  const uint64_t share = ((call.count + kRanks - 1) / kRanks + 1) / 2 * 2;
  const uint64_t lines = (share + kLineFloats - 1) / kLineFloats;
  const LineLane lane{threadIdx.x % kLanes};
  const uint64_t stage = kRanks * call.row * kLanes;  // in pieces of 16 bytes, as all below
  const uint64_t first = (epoch & 1) * 2 * stage, second = first + stage;
  const auto floats_of = [&](uint32_t r) {
    const uint64_t begin = r * share;
    return begin >= call.count ? 0 : min(share, call.count - begin);
  };
  constexpr uint32_t kWarpLines = 32 / kLanes;
  const uint64_t warp = (uint64_t{blockIdx.x} * blockDim.x + threadIdx.x) / 32;
  const uint64_t warps = uint64_t{gridDim.x} * blockDim.x / 32;
  for (uint64_t base = warp * kWarpLines; base < lines; base += warps * kWarpLines) {
    const uint64_t line = base + threadIdx.x % 32 / kLanes;
    const bool active = line < lines;
    const uint64_t place = line * kLanes + lane.index;
    const auto slot = [&](uint32_t owner, uint64_t at, uint32_t row) {
      return reinterpret_cast<uint4*>(call.scratch.of[owner]) + at + row * call.row * kLanes +
             place;
    };
    uint4 got[kRanks - 1];
    uint4 sum{};
    if (active) {
#pragma unroll
      for (uint32_t i = 1; i < kRanks; ++i) {
        const uint32_t peer = (rank + i) % kRanks;
        store_now(slot(peer, first, rank),
                  lane.load(call.input + peer * share, line, floats_of(peer), epoch));
      }
      sum = lane.load(call.input + rank * share, line, floats_of(rank), epoch);
    }
    await<kRanks>(slot(rank, first, 0), call.row, rank, lane, active, epoch, got);
    if (active) {
      float4 own;
      take(sum, own);
      const float4 total = sum_in_rank_order<kRanks>(rank, own, got);
      sum = {__float_as_uint(total.x), __float_as_uint(total.y), __float_as_uint(total.z),
             __float_as_uint(total.w)};
      sum = lane.with_flag(sum, epoch);
#pragma unroll
      for (uint32_t i = 1; i < kRanks; ++i) {
        store_now(slot((rank + i) % kRanks, second, rank), sum);
      }
      lane.store(call.output + rank * share, line, floats_of(rank), sum);
    }
    await<kRanks>(slot(rank, second, 0), call.row, rank, lane, active, epoch, got);
    if (active) {
#pragma unroll
      for (uint32_t i = 1; i < kRanks; ++i) {
        const uint32_t peer = (rank + i) % kRanks;
        lane.store(call.output + peer * share, line, floats_of(peer), got[i - 1]);
      }
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) call.epochs[blockIdx.x] = epoch;
}

}  // namespace

cudaError_t launch_two_shot_lines(const TwoShotLines& call, cudaStream_t stream) {
  return launch_for_ranks(call.who.ranks, [&](auto ranks) {
    return launch_early(two_shot_lines<ranks.value>, call, stream);
  });
}

}  // namespace mscclc::bench
