// What stands between GEMMs and plans on a stream: flags that a stream raises, or waits for, and
// sums. Kernels of a thread, except the last.
#include <cuda_runtime.h>

#include <algorithm>
#include <vector>

#include "executor/cuda/device/wait.cuh"
#include "executor/cuda/kernel.h"
#include "executor/interpreter/part_sum.h"

namespace mscclc::cuda {
namespace {

constexpr uint32_t kSumThreads = 256, kMaxSumBlocks = 2048;
constexpr uint32_t kPollPause = 32;  ///< nanoseconds

// Kernels before it on the stream have ended: all that they wrote can be seen.
__global__ void raise_kernel(uint32_t* word, uint32_t times) {
  asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(word), "r"(times) : "memory");
}

__device__ bool has_come(const uint32_t* word, uint32_t goal) {
  return static_cast<int32_t>(load_acquire_gpu(word) - goal) >= 0;
}

__global__ void await_kernel(const uint32_t* word, const uint32_t* ended, uint32_t* runs,
                             uint32_t raises, bool counts) {
  const uint32_t run = *runs + 1;
  while (!has_come(word, run * raises) && !has_come(ended, run)) __nanosleep(kPollPause);
  if (counts) *runs = run;  // for kernels after it on the stream
}

template <Dtype T, uint32_t kPiece>
__global__ void sum_kernel(device::PartSum sum) {
  const uint64_t stride = uint64_t{gridDim.x} * blockDim.x * kPiece;
  uint64_t at = (uint64_t{blockIdx.x} * blockDim.x + threadIdx.x) * kPiece;
  for (; at < sum.count; at += stride) device::add_parts_at<T, kPiece>(sum, at);
}

struct SumKernel {
  const void* code;
  uint32_t piece;
};

template <Dtype T>
SumKernel sum_kernel_of(bool whole_pieces) {
  constexpr uint32_t kPiece = device::kPieceOf<T>;
  if (whole_pieces) return {reinterpret_cast<const void*>(sum_kernel<T, kPiece>), kPiece};
  return {reinterpret_cast<const void*>(sum_kernel<T, 1>), 1};
}

SumKernel pick_sum_kernel(const device::PartSum& sum) {
  switch (sum.dtype) {
    case Dtype::f32:
      return sum_kernel_of<Dtype::f32>(device::has_whole_pieces<Dtype::f32>(sum));
    case Dtype::f16:
      return sum_kernel_of<Dtype::f16>(device::has_whole_pieces<Dtype::f16>(sum));
    case Dtype::bf16:
      return sum_kernel_of<Dtype::bf16>(device::has_whole_pieces<Dtype::bf16>(sum));
    default:
      return {};
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
  std::vector<const void*> kernels = {reinterpret_cast<const void*>(raise_kernel),
                                      reinterpret_cast<const void*>(await_kernel)};
  for (const bool whole_pieces : {false, true}) {
    for (const SumKernel kernel :
         {sum_kernel_of<Dtype::f32>(whole_pieces), sum_kernel_of<Dtype::f16>(whole_pieces),
          sum_kernel_of<Dtype::bf16>(whole_pieces)}) {
      kernels.push_back(kernel.code);
    }
  }
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

int await_flag(const uint32_t* word, const uint32_t* ended, uint32_t* runs, uint32_t raises,
               bool counts, void* stream) {
  void* parameters[] = {&word, &ended, &runs, &raises, &counts};
  return start(reinterpret_cast<const void*>(await_kernel), 1, 1, parameters, stream);
}

int add_parts(const device::PartSum& sum, void* stream) {
  const SumKernel kernel = pick_sum_kernel(sum);
  if (kernel.code == nullptr) return cudaErrorInvalidValue;
  if (sum.count == 0) return cudaSuccess;
  const uint64_t a_block = uint64_t{kSumThreads} * kernel.piece;
  const auto blocks =
      static_cast<uint32_t>(std::min<uint64_t>((sum.count + a_block - 1) / a_block, kMaxSumBlocks));
  device::PartSum argument = sum;
  void* parameters[] = {&argument};
  return start(kernel.code, blocks, kSumThreads, parameters, stream);
}

}  // namespace mscclc::cuda
