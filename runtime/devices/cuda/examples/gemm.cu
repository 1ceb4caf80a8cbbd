// Tiles in shared memory, a piece of the result in the registers of each thread, a main loop over k
// and an epilogue that stores: the parts of a kernel of CUTLASS, in their simplest form. The one
// line that matters stands at the head of the last round.
#include "runtime/api/let_next_call_begin.cuh"
#include "runtime/devices/cuda/examples/gemm.h"

namespace mscclc::examples {
namespace {

constexpr uint32_t kTile = 64;            // rows and columns of the result that a block makes
constexpr uint32_t kDepth = 16;           // of a round of the main loop
constexpr uint32_t kSide = 16;            // threads of a block: kSide × kSide ...
constexpr uint32_t kOwn = kTile / kSide;  // ... each with kOwn × kOwn elements

struct Tiles {
  float a[kTile][kDepth + 1];  // a column more: threads side by side use other banks
  float b[kDepth][kTile];
};

__device__ void load_tiles(Tiles& tiles, const Gemm& gemm, uint32_t round) {
  const uint32_t thread = threadIdx.y * kSide + threadIdx.x;
  for (uint32_t i = thread; i < kTile * kDepth; i += kSide * kSide) {
    const uint64_t row = blockIdx.y * kTile + i / kDepth, at = round + i % kDepth;
    tiles.a[i / kDepth][i % kDepth] = gemm.a[row * gemm.k + at];
  }
  for (uint32_t i = thread; i < kTile * kDepth; i += kSide * kSide) {
    const uint64_t at = round + i / kTile, column = blockIdx.x * kTile + i % kTile;
    tiles.b[i / kTile][i % kTile] = gemm.b[at * gemm.n + column];
  }
}

__device__ void multiply(const Tiles& tiles, float (&sums)[kOwn][kOwn]) {
  for (uint32_t d = 0; d < kDepth; ++d) {
#pragma unroll
    for (uint32_t i = 0; i < kOwn; ++i) {
#pragma unroll
      for (uint32_t j = 0; j < kOwn; ++j) {
        sums[i][j] += tiles.a[threadIdx.y * kOwn + i][d] * tiles.b[d][threadIdx.x + j * kSide];
      }
    }
  }
}

__global__ void __launch_bounds__(kSide* kSide) multiply_tiles(const Gemm gemm) {
  __shared__ Tiles tiles;
  float sums[kOwn][kOwn] = {};
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();  // where it is launched early, a and b are there from now on
#endif
  for (uint32_t round = 0; round < gemm.k; round += kDepth) {
    if (round + kDepth >= gemm.k) let_next_call_begin();
    load_tiles(tiles, gemm, round);
    __syncthreads();
    multiply(tiles, sums);
    __syncthreads();
  }
  for (uint32_t i = 0; i < kOwn; ++i) {
    const uint64_t row = blockIdx.y * kTile + threadIdx.y * kOwn + i;
    for (uint32_t j = 0; j < kOwn; ++j) {
      gemm.c[row * gemm.n + blockIdx.x * kTile + threadIdx.x + j * kSide] = sums[i][j];
    }
  }
}

}  // namespace

cudaError_t launch_gemm(const Gemm& gemm, bool early, cudaStream_t stream) {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(gemm.n / kTile, gemm.m / kTile);
  config.blockDim = dim3(kSide, kSide);
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = early ? 1 : 0;
  return cudaLaunchKernelEx(&config, multiply_tiles, gemm);
}

}  // namespace mscclc::examples
