// The words of CUDA C++, for compilers that know none of them: device code that is compiled for the
// host gets this file first (-include). Threads are fibers (grid.h).
#pragma once

#include <cstdint>
#include <cstring>

#define MSCCLC_ON_HOST 1

#define __device__
#define __host__
#define __global__
#define __grid_constant__
#define __launch_bounds__(...)
// Empty: headers of the standard library say __attribute__((__noinline__)).
#define __noinline__
#define __forceinline__ inline

struct uint2 {
  uint32_t x, y;
};
struct alignas(16) uint4 {
  uint32_t x, y, z, w;
};
struct float4 {
  float x, y, z, w;
};
struct dim3 {
  uint32_t x = 1, y = 1, z = 1;
  constexpr dim3() = default;
  constexpr explicit dim3(uint32_t n) : x(n) {}
};

/// Of the thread that runs (host::Gpu).
extern const dim3 &threadIdx, &blockIdx, &blockDim;

/// The threads of a block meet. Those that have ended are not waited for.
void __syncthreads();
/// The threads of a warp that `mask` names meet.
void __syncwarp(uint32_t mask);
/// The same; returns for which of them `vote` is not 0.
uint32_t __ballot_sync(uint32_t mask, uint32_t vote);
inline bool __all_sync(uint32_t mask, bool vote) { return __ballot_sync(mask, vote) == mask; }

// Counts that the threads of a device share; fibers do not take turns in the middle.
unsigned long long atomicAdd(unsigned long long* count, unsigned long long more);
unsigned long long atomicOr(unsigned long long* word, unsigned long long bits);
uint32_t atomicOr(uint32_t* word, uint32_t bits);
void __threadfence_system();
