// Kernels that stand for the rest of a program around a call: all multiprocessors are busy for some
// time, then the call's data is written, or read.
#include "executor/cuda/device/ahead.cuh"
#include "tools/bench/kernels/handwritten.cuh"
#include "tools/bench/kernels/kernels.h"

namespace mscclc::bench {
namespace {

constexpr uint32_t kThreads = 512;

/// Touches every piece. What is written is what was there, which the compiler cannot know.
template <class Piece>
__device__ void touch(const BusyKernel& kernel) {
  auto* pieces = reinterpret_cast<Piece*>(kernel.data);
  const uint64_t count = kernel.bytes / sizeof(Piece);
  Piece seen = 0;
  for (uint64_t i = uint64_t{blockIdx.x} * kThreads + threadIdx.x; i < count;
       i += uint64_t{gridDim.x} * kThreads) {
    const Piece piece = pieces[i];
    if (kernel.writes) {
      pieces[i] = piece ^ static_cast<Piece>(kernel.zero);
    } else {
      seen |= piece;
    }
  }
  if (kernel.zero != 0 && seen != 0) __trap();  // never: reads must not be dropped
}

__global__ void __launch_bounds__(kThreads) be_busy(__grid_constant__ const BusyKernel kernel) {
  cuda::await_kernel_ahead(kernel.early);
  const long long begin = clock64();
  while (clock64() - begin < static_cast<long long>(kernel.cycles)) {
  }
  if ((reinterpret_cast<uintptr_t>(kernel.data) | kernel.bytes) % sizeof(uint64_t) == 0) {
    touch<uint64_t>(kernel);
  } else {
    touch<uint8_t>(kernel);
  }
}

}  // namespace

cudaError_t launch_busy(const BusyKernel& kernel, cudaStream_t stream) {
  cudaLaunchAttribute early = cuda::may_begin_early();
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(kernel.blocks);
  config.blockDim = dim3(kThreads);
  config.stream = stream;
  config.attrs = &early;
  config.numAttrs = kernel.early && launches_early() ? 1 : 0;
  return cudaLaunchKernelEx(&config, be_busy, kernel);
}

}  // namespace mscclc::bench
