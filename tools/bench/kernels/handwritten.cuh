// What the kernels written by hand have in common: accesses that peers see at once, waits that end,
// sums in the order of ranks (so that all ranks get the same bits).
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "executor/cuda/device/ahead.cuh"

namespace mscclc::bench {

/// Can the GPU of this process launch early? Asked once: a rank has one GPU.
inline bool launches_early() {
  static const bool able = [] {
    int device = 0, major = 0;
    return cudaGetDevice(&device) == cudaSuccess &&
           cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) ==
               cudaSuccess &&
           major >= 9;
  }();
  return able;
}

/// Launches a kernel that may begin early, as small calls of plans do. It awaits the kernel ahead
/// before it reads anything.
template <class Call>
cudaError_t launch_early(void (*kernel)(Call), const Call& call, cudaStream_t stream) {
  cudaLaunchAttribute early = cuda::may_begin_early();
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(call.blocks);
  config.blockDim = dim3(call.threads);
  config.stream = stream;
  config.attrs = &early;
  config.numAttrs = launches_early() ? 1 : 0;
  return cudaLaunchKernelEx(&config, kernel, call);
}

__device__ inline void store_now(uint4* at, uint4 v) {
  asm volatile("st.volatile.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(at), "r"(v.x), "r"(v.y),
               "r"(v.z), "r"(v.w)
               : "memory");
}
__device__ inline uint4 load_now(const uint4* at) {
  uint4 v;
  asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(at)
               : "memory");
  return v;
}

/// Ends the program rather than wait forever for a rank that is not there: some ten seconds of
/// polling.
class Patience {
 public:
  __device__ void wait(bool ready) {
    if (!ready && ++polls_ > (1u << 24)) __trap();
  }

 private:
  uint32_t polls_ = 0;
};

/// Publishes what the thread saw before, which after a block barrier is all that its block wrote.
__device__ inline void raise(uint32_t* flag, uint32_t value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}
/// Waits until a flag has come so far, and sees what was published.
__device__ inline void await(const uint32_t* flag, uint32_t value) {
  Patience patience;
  for (bool ready = false; !ready;) {
    uint32_t seen = 0;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
    ready = static_cast<int32_t>(seen - value) >= 0;
    patience.wait(ready);
  }
}

/// Floats i and i + 1 of `count`, 0 after the end; any alignment of a float.
__device__ inline float2 load_pair(const float* from, uint64_t i, uint64_t count) {
  if (i + 1 < count && (reinterpret_cast<uintptr_t>(from + i) & 7) == 0) {
    return *reinterpret_cast<const float2*>(from + i);
  }
  return {i < count ? from[i] : 0.f, i + 1 < count ? from[i + 1] : 0.f};
}
__device__ inline void store_pair(float* to, uint64_t i, uint64_t count, float2 value) {
  if (i + 1 < count && (reinterpret_cast<uintptr_t>(to + i) & 7) == 0) {
    *reinterpret_cast<float2*>(to + i) = value;
    return;
  }
  if (i < count) to[i] = value.x;
  if (i + 1 < count) to[i + 1] = value.y;
}

__device__ inline float2 add(float2 a, float2 b) { return {a.x + b.x, a.y + b.y}; }
__device__ inline float4 add(float4 a, float4 b) {
  return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
}
__device__ inline void take(uint4 packet, float2& value) {
  value = {__uint_as_float(packet.x), __uint_as_float(packet.z)};
}
__device__ inline void take(uint4 packet, float4& value) {
  value = {__uint_as_float(packet.x), __uint_as_float(packet.y), __uint_as_float(packet.z),
           __uint_as_float(packet.w)};
}

/// `got[i - 1]` is of rank (rank + i) % kRanks. Adds from rank 0 on, so indices into `got` depend
/// on the rank: selects rather than indexing keep it in registers.
template <uint32_t kRanks, class Value>
__device__ Value sum_in_rank_order(uint32_t rank, Value own, const uint4 (&got)[kRanks - 1]) {
  Value sum{};
#pragma unroll
  for (uint32_t r = 0; r < kRanks; ++r) {
    Value value = own;
#pragma unroll
    for (uint32_t i = 1; i < kRanks; ++i) {
      if ((rank + i) % kRanks == r) take(got[i - 1], value);
    }
    sum = r == 0 ? value : add(sum, value);
  }
  return sum;
}

/// Calls `launch` with the number of ranks as a constant.
template <class Launch>
cudaError_t launch_for_ranks(uint32_t ranks, const Launch& launch) {
  switch (ranks) {
    case 2:
      return launch(std::integral_constant<uint32_t, 2>());
    case 4:
      return launch(std::integral_constant<uint32_t, 4>());
    case 8:
      return launch(std::integral_constant<uint32_t, 8>());
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace mscclc::bench
