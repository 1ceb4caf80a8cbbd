#include <cuda_runtime.h>

#include "executor/cuda/device/arithmetic.cuh"
#include "executor/cuda/testing/fp8_check.h"

namespace mscclc::cuda {
namespace {

__device__ void note(Differences* found, unsigned long long* count, uint32_t example) {
  atomicAdd(count, 1ull);
  found->example = example;
}

/// Rows as kernels write them, of 16 floats in a row.
template <Dtype T>
__global__ void compare_floats(Differences* found) {
  using Sums = typename OneType<T>::RowSums;
  const uint64_t all = uint64_t{1} << 32, threads = uint64_t{gridDim.x} * blockDim.x;
  for (uint64_t first = (uint64_t{blockIdx.x} * blockDim.x + threadIdx.x) * 16; first < all;
       first += threads * 16) {
    Sums sums;
#pragma unroll
    for (uint32_t i = 0; i < 16; ++i) {
      sums.values[i] = __uint_as_float(static_cast<uint32_t>(first) + i);
    }
    const uint4 row = OneType<T>::finish(sums, 1);
    const uint32_t words[] = {row.x, row.y, row.z, row.w};
#pragma unroll
    for (uint32_t i = 0; i < 16; ++i) {
      const auto bits = static_cast<uint32_t>(first) + i;
      const uint32_t expected = device::result_of<T>(__uint_as_float(bits));
      if ((words[i / 4] >> (i % 4 * 8) & 0xff) == expected) continue;
      note(found, reinterpret_cast<unsigned long long*>(&found->floats), bits);
    }
  }
}

/// Codes as kernels add them, and as they begin a sum; thread c tries code c.
template <Dtype T>
__global__ void compare_codes(Differences* found) {
  using Sums = typename OneType<T>::RowSums;
  const uint32_t code = threadIdx.x;
  const float expected = device::Element<T>::read(static_cast<uint8_t>(code));
  for (uint32_t place = 0; place < 16; ++place) {
    uint32_t words[4] = {};
    words[place / 4] = code << (place % 4 * 8);
    const uint4 row = {words[0], words[1], words[2], words[3]};
    Sums begun, added;
    OneType<T>::start(begun, row);
    for (float& value : added.values) value = -0.0f;  // changes no number
    OneType<T>::add(added, row);
    bool same = true;
    for (uint32_t i = 0; i < 16; ++i) {
      const float value = i == place ? expected : 0.0f;
      same &= __float_as_uint(begun.values[i]) == __float_as_uint(value);
      same &= isnan(value) ? isnan(added.values[i])
                           : __float_as_uint(added.values[i]) == __float_as_uint(value);
    }
    if (!same) note(found, reinterpret_cast<unsigned long long*>(&found->codes), code);
  }
}

template <Dtype T>
void compare(Differences* found) {
  compare_floats<T><<<1024, 256>>>(found);
  compare_codes<T><<<1, 256>>>(found);
}

}  // namespace

int compare_conversions(Dtype dtype, Differences& found) {
  Differences* there = nullptr;
  int error = cudaMalloc(&there, sizeof found);
  if (error != cudaSuccess) return error;
  error = cudaMemset(there, 0, sizeof found);
  if (error == cudaSuccess) {
    dtype == Dtype::e4m3 ? compare<Dtype::e4m3>(there) : compare<Dtype::e5m2>(there);
    error = cudaGetLastError();
  }
  if (error == cudaSuccess) {
    error = cudaMemcpy(&found, there, sizeof found, cudaMemcpyDeviceToHost);
  }
  cudaFree(there);
  return error;
}

}  // namespace mscclc::cuda
