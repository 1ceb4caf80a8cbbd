// What stands between GEMMs and plans on a stream: flags that a stream raises, or waits for, and a
// bias. Kernels of a thread, except the last.
#include <cuda_runtime.h>

#include <algorithm>

#include "executor/cuda/device/wait.cuh"
#include "executor/cuda/kernel.h"
#include "executor/interpreter/numbers.h"

namespace mscclc::cuda {
namespace {

constexpr uint32_t kBiasThreads = 256, kMostBiasBlocks = 2048;
constexpr uint32_t kPollPause = 32;  ///< nanoseconds

// Kernels before it on the stream have ended: all that they wrote can be seen.
__global__ void raise_kernel(uint32_t* word, uint32_t times) {
  asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(word), "r"(times) : "memory");
}

__device__ bool has_come(const uint32_t* word, uint32_t goal) {
  return static_cast<int32_t>(load_acquire_gpu(word) - goal) >= 0;
}

__global__ void await_kernel(const uint32_t* word, const uint32_t* ended, const uint32_t* runs,
                             uint32_t raises) {
  const uint32_t run = *runs + 1;
  while (!has_come(word, run * raises) && !has_come(ended, run)) __nanosleep(kPollPause);
}

template <Dtype T>
__global__ void bias_kernel(void* to, const void* from, const void* bias, uint64_t count,
                            uint64_t columns) {
  using E = device::Element<T>;
  using Bits = typename E::Bits;
  const uint64_t stride = uint64_t{gridDim.x} * blockDim.x;
  for (uint64_t i = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    const float sum = E::read(static_cast<const Bits*>(from)[i]) +
                      E::read(static_cast<const Bits*>(bias)[i % columns]);
    static_cast<Bits*>(to)[i] = E::write(sum);
  }
}

const void* bias_kernel_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::f32:
      return reinterpret_cast<const void*>(bias_kernel<Dtype::f32>);
    case Dtype::f16:
      return reinterpret_cast<const void*>(bias_kernel<Dtype::f16>);
    case Dtype::bf16:
      return reinterpret_cast<const void*>(bias_kernel<Dtype::bf16>);
    default:
      return nullptr;
  }
}

int start(const void* kernel, uint32_t blocks, uint32_t threads, void** parameters, void* stream) {
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(threads);
  config.stream = static_cast<cudaStream_t>(stream);
  return cudaLaunchKernelExC(&config, kernel, parameters);
}

}  // namespace

int load_gemm_steps() {
  const void* const kernels[] = {
      reinterpret_cast<const void*>(raise_kernel), reinterpret_cast<const void*>(await_kernel),
      bias_kernel_of(Dtype::f32), bias_kernel_of(Dtype::f16), bias_kernel_of(Dtype::bf16)};
  for (const void* kernel : kernels) {
    cudaFuncAttributes code = {};
    if (const int error = cudaFuncGetAttributes(&code, kernel); error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

int raise_flag(uint32_t* word, uint32_t times, void* stream) {
  void* parameters[] = {&word, &times};
  return start(reinterpret_cast<const void*>(raise_kernel), 1, 1, parameters, stream);
}

int await_flag(const uint32_t* word, const uint32_t* ended, const uint32_t* runs, uint32_t raises,
               void* stream) {
  void* parameters[] = {&word, &ended, &runs, &raises};
  return start(reinterpret_cast<const void*>(await_kernel), 1, 1, parameters, stream);
}

int add_bias(Dtype dtype, void* to, const void* from, const void* bias, uint64_t rows,
             uint64_t columns, void* stream) {
  const void* const kernel = bias_kernel_of(dtype);
  if (kernel == nullptr) return cudaErrorInvalidValue;
  uint64_t count = rows * columns;
  if (count == 0) return cudaSuccess;
  const auto blocks = static_cast<uint32_t>(
      std::min<uint64_t>((count + kBiasThreads - 1) / kBiasThreads, kMostBiasBlocks));
  void* parameters[] = {&to, &from, &bias, &count, &columns};
  return start(kernel, blocks, kBiasThreads, parameters, stream);
}

}  // namespace mscclc::cuda
