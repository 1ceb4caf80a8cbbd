// AllGather, AllToAll and ReduceScatter in LL128 lines, each as one kernel. A group of lanes sends
// line l of what each peer gets, then takes line l of what all peers have sent, or adds it up.
#include "tools/bench/kernels/handwritten_lines.cuh"
#include "tools/bench/kernels/kernels.h"

namespace mscclc::bench {
namespace {

template <uint32_t kRanks, Exchanged kWhat>
__global__ void __launch_bounds__(512) exchange_lines(__grid_constant__ const ExchangeLines call) {
  cuda::await_kernel_ahead(true);
  const uint32_t rank = call.who.rank;
  const uint32_t epoch = call.epochs[blockIdx.x] + 1;
  const uint64_t lines = (call.part + kLineFloats - 1) / kLineFloats;
  const uint64_t half = (epoch & 1) * kRanks * call.row * kLanes;  // in pieces of 16 bytes
  const LineLane lane{threadIdx.x % kLanes};
  constexpr uint32_t kWarpLines = 32 / kLanes;
  const uint64_t warp = (uint64_t{blockIdx.x} * blockDim.x + threadIdx.x) / 32;
  const uint64_t warps = uint64_t{gridDim.x} * blockDim.x / 32;
  for (uint64_t base = warp * kWarpLines; base < lines; base += warps * kWarpLines) {
    const uint64_t line = base + threadIdx.x % 32 / kLanes;
    const bool active = line < lines;
    const auto slot = [&](uint32_t owner, uint32_t source) {
      return reinterpret_cast<uint4*>(call.scratch.of[owner]) + half + source * call.row * kLanes +
             line * kLanes + lane.index;
    };
    const auto load = [&](uint32_t row) {
      const float* from = kWhat == Exchanged::part ? call.input : call.input + row * call.part;
      return lane.load(from, line, call.part, epoch);
    };
    uint4 own{};
    if (active) {
      own = load(rank);
#pragma unroll
      for (uint32_t i = 1; i < kRanks; ++i) {
        const uint32_t peer = (rank + i) % kRanks;
        store_now(slot(peer, rank), kWhat == Exchanged::part ? own : load(peer));
      }
    }
    uint4 got[kRanks - 1];
    await<kRanks>(slot(rank, 0), call.row, rank, lane, active, epoch, got);
    if (!active) continue;
    if constexpr (kWhat == Exchanged::sums) {
      float4 mine;
      take(own, mine);
      const float4 sum = sum_in_rank_order<kRanks>(rank, mine, got);
      lane.store(call.output, line, call.part,
                 {__float_as_uint(sum.x), __float_as_uint(sum.y), __float_as_uint(sum.z),
                  __float_as_uint(sum.w)});
    } else {
      lane.store(call.output + rank * call.part, line, call.part, own);
#pragma unroll
      for (uint32_t i = 1; i < kRanks; ++i) {
        lane.store(call.output + (rank + i) % kRanks * call.part, line, call.part, got[i - 1]);
      }
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) call.epochs[blockIdx.x] = epoch;
}

template <Exchanged kWhat>
cudaError_t launch(const ExchangeLines& call, cudaStream_t stream) {
  return launch_for_ranks(call.who.ranks, [&](auto ranks) {
    return launch_early(exchange_lines<ranks.value, kWhat>, call, stream);
  });
}

}  // namespace

cudaError_t launch_exchange_lines(const ExchangeLines& call, cudaStream_t stream) {
  switch (call.what) {
    case Exchanged::part:
      return launch<Exchanged::part>(call, stream);
    case Exchanged::rows:
      return launch<Exchanged::rows>(call, stream);
    case Exchanged::sums:
      return launch<Exchanged::sums>(call, stream);
  }
  return cudaErrorInvalidValue;
}

}  // namespace mscclc::bench
