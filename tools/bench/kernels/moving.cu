// Kernels that move bytes only, and that compare them.
#include "tools/bench/kernels/copying.cuh"
#include "tools/bench/kernels/kernels.h"

namespace mscclc::bench {
namespace {

constexpr uint32_t kThreads = 512;
constexpr uint64_t kMaxBlocks = 264;  // two a multiprocessor

template <class Piece>
__device__ void move_all(const CopyMove& move) {
  copy_pieces(reinterpret_cast<Piece*>(move.to), reinterpret_cast<const Piece*>(move.from),
              move.bytes / sizeof(Piece), uint64_t{blockIdx.x} * kThreads + threadIdx.x,
              uint64_t{gridDim.x} * kThreads);
}

template <class Element>
__global__ void __launch_bounds__(kThreads) copy(__grid_constant__ const CopyMoves moves) {
  const CopyMove& move = moves.move[blockIdx.y];
  const uintptr_t bits =
      reinterpret_cast<uintptr_t>(move.to) | reinterpret_cast<uintptr_t>(move.from) | move.bytes;
  if (bits % sizeof(uint4) == 0) {
    move_all<uint4>(move);
  } else {
    move_all<Element>(move);
  }
}

template <class Element>
__global__ void __launch_bounds__(kThreads)
    count_different(const Element* a, const Element* b, uint64_t elements,
                    unsigned long long* count) {
  unsigned long long own = 0;
  const uint64_t stride = uint64_t{gridDim.x} * kThreads;
  for (uint64_t i = uint64_t{blockIdx.x} * kThreads + threadIdx.x; i < elements; i += stride) {
    own += a[i] != b[i] ? 1 : 0;
  }
  if (own > 0) atomicAdd(count, own);
}

uint32_t blocks_for(uint64_t pieces, uint64_t most) {
  const uint64_t blocks = (pieces + kThreads - 1) / kThreads;
  return static_cast<uint32_t>(blocks < 1 ? 1 : blocks > most ? most : blocks);
}

}  // namespace

cudaError_t launch_copy(const CopyMoves& moves, uint32_t element, cudaStream_t stream) {
  if (moves.count == 0) return cudaSuccess;
  uint64_t longest = 0;
  for (uint32_t i = 0; i < moves.count; ++i) {
    longest = moves.move[i].bytes > longest ? moves.move[i].bytes : longest;
  }
  const dim3 grid(blocks_for(longest / sizeof(uint4), kMaxBlocks / moves.count), moves.count);
  if (element == 1) {
    copy<uint8_t><<<grid, kThreads, 0, stream>>>(moves);
  } else if (element == 2) {
    copy<uint16_t><<<grid, kThreads, 0, stream>>>(moves);
  } else {
    copy<uint32_t><<<grid, kThreads, 0, stream>>>(moves);
  }
  return cudaGetLastError();
}

cudaError_t launch_count_different(const uint8_t* a, const uint8_t* b, uint64_t elements,
                                   uint32_t element, uint64_t* count, cudaStream_t stream) {
  const auto launch = [&](auto type) {
    using Element = decltype(type);
    count_different<<<blocks_for(elements, kMaxBlocks), kThreads, 0, stream>>>(
        reinterpret_cast<const Element*>(a), reinterpret_cast<const Element*>(b), elements,
        reinterpret_cast<unsigned long long*>(count));
  };
  if (element == 1) {
    launch(uint8_t{});
  } else if (element == 2) {
    launch(uint16_t{});
  } else if (element == 4) {
    launch(uint32_t{});
  } else {
    launch(uint64_t{});
  }
  return cudaGetLastError();
}

}  // namespace mscclc::bench
