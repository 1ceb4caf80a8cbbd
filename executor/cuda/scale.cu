// The kernel that scales elements before they are added up.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstring>

#include "executor/cuda/kernel.h"
#include "executor/interpreter/scaling.h"

namespace mscclc::cuda {
namespace {

constexpr uint32_t kThreads = 256, kMaxBlocks = 1024, kRowBytes = 16;

template <Dtype T>
__device__ uint4 scaled_row(const uint4& row, double factor) {
  using Bits = typename device::Element<T>::Bits;
  Bits elements[kRowBytes / sizeof(Bits)];
  memcpy(elements, &row, kRowBytes);
#pragma unroll
  for (Bits& element : elements) element = device::scaled<T>(element, factor);
  uint4 out;
  memcpy(&out, elements, kRowBytes);
  return out;
}

struct Scaling {
  void* to;
  const void* from;
  uint64_t count;
  double factor;
};

/// `rows` of 16 bytes, then what is left, element by element.
template <Dtype T>
__global__ void scale_kernel(Scaling what, uint64_t rows) {
  using Bits = typename device::Element<T>::Bits;
  constexpr uint64_t kOfRow = kRowBytes / sizeof(Bits);
  const uint64_t first = uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const uint64_t stride = uint64_t{gridDim.x} * blockDim.x;
  const auto* const from_rows = static_cast<const uint4*>(what.from);
  for (uint64_t i = first; i < rows; i += stride) {
    static_cast<uint4*>(what.to)[i] = scaled_row<T>(from_rows[i], what.factor);
  }
  auto* const to = static_cast<uint8_t*>(what.to);
  const auto* const from = static_cast<const uint8_t*>(what.from);
  for (uint64_t i = rows * kOfRow + first; i < what.count; i += stride) {
    Bits element;  // at any address
    memcpy(&element, from + i * sizeof element, sizeof element);
    element = device::scaled<T>(element, what.factor);
    memcpy(to + i * sizeof element, &element, sizeof element);
  }
}

template <Dtype T>
const void* scale_kernel_of() {
  if constexpr (device::Element<T>::kIsFloat) {
    return reinterpret_cast<const void*>(scale_kernel<T>);
  } else {
    return nullptr;
  }
}

const void* scale_kernel_of(Dtype dtype) {
  switch (dtype) {
#define DTYPE(name, ...) \
  case Dtype::name:      \
    return scale_kernel_of<Dtype::name>();
#include "ir/ops/dtypes.def"
#undef DTYPE
  }
  return nullptr;
}

bool is_aligned(const void* address) {
  return reinterpret_cast<uintptr_t>(address) % kRowBytes == 0;
}

}  // namespace

int load_scale_kernels() {
  for (const DtypeInfo& row : dtype_table()) {
    const void* const kernel = scale_kernel_of(row.dtype);
    cudaFuncAttributes code = {};
    const int error = kernel == nullptr ? cudaSuccess : cudaFuncGetAttributes(&code, kernel);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

int scale(Dtype dtype, void* to, const void* from, uint64_t count, double factor, void* stream) {
  const void* const kernel = scale_kernel_of(dtype);
  if (kernel == nullptr) return cudaErrorInvalidValue;
  if (count == 0) return cudaSuccess;
  Scaling what{to, from, count, factor};
  const uint64_t of_row = kRowBytes / info(dtype).bytes;
  const bool in_rows = is_aligned(to) && is_aligned(from);
  uint64_t rows = in_rows ? count / of_row : 0;
  const uint64_t pieces = std::max(rows, count - rows * of_row);
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(
      static_cast<uint32_t>(std::min<uint64_t>((pieces + kThreads - 1) / kThreads, kMaxBlocks)));
  config.blockDim = dim3(kThreads);
  config.stream = static_cast<cudaStream_t>(stream);
  void* parameters[] = {&what, &rows};
  return cudaLaunchKernelExC(&config, kernel, parameters);
}

}  // namespace mscclc::cuda
