// As much of CUDA's runtime as programs of device code that is compiled for the host need: one
// device, whose memory is the host's, and whose launches run when they are waited for (grid.h).
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "executor/cuda/host/cuda_words.h"
#include "executor/cuda/host/grid.h"

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorLaunchTimeout = 702,
};
inline const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidConfiguration:
      return "invalid configuration argument";
    case cudaErrorLaunchTimeout:
      return "the launch hangs: nothing can move, and no wait is given up";
  }
  return "unrecognized error code";
}

using cudaStream_t = mscclc::cuda::host::Stream*;

inline constexpr unsigned cudaStreamNonBlocking = 1;
inline constexpr unsigned cudaHostAllocPortable = 1, cudaHostAllocMapped = 2;
enum cudaMemcpyKind {
  cudaMemcpyHostToHost,
  cudaMemcpyHostToDevice,
  cudaMemcpyDeviceToHost,
  cudaMemcpyDeviceToDevice,
  cudaMemcpyDefault,
};
enum cudaDeviceAttr { cudaDevAttrMultiProcessorCount = 16 };
enum cudaLaunchAttributeID { cudaLaunchAttributeProgrammaticStreamSerialization = 6 };
struct cudaLaunchAttribute {
  cudaLaunchAttributeID id;
  struct {
    int programmaticStreamSerializationAllowed;
  } val;
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes;
  cudaStream_t stream;
  cudaLaunchAttribute* attrs;
  unsigned numAttrs;
};
struct cudaFuncAttributes {
  int ptxVersion, binaryVersion;
  size_t localSizeBytes;
};
enum cudaLimit { cudaLimitStackSize };

inline mscclc::cuda::host::Stream& stream_of(cudaStream_t stream) {
  return stream == nullptr ? mscclc::cuda::host::Machine::get().default_stream : *stream;
}

inline cudaError_t cudaMalloc(void** made, size_t bytes) {
  // 128 bytes, a line of memory: what plans count on.
  *made = std::aligned_alloc(128, (bytes + 127) / 128 * 128);
  return *made == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}
inline cudaError_t cudaFree(void* memory) {
  std::free(memory);
  return cudaSuccess;
}
inline cudaError_t cudaHostAlloc(void** made, size_t bytes, unsigned) {
  return cudaMalloc(made, bytes);
}
inline cudaError_t cudaFreeHost(void* memory) { return cudaFree(memory); }
inline cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  std::memset(to, value, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  if (bytes != 0) std::memcpy(to, from, bytes);
  return cudaSuccess;
}
/// Copies at once: code that orders copies waits for each.
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                                   cudaStream_t) {
  return cudaMemcpy(to, from, bytes, kind);
}

inline cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
inline cudaError_t cudaSetDevice(int device) {
  return device == 0 ? cudaSuccess : cudaErrorInvalidValue;
}
inline cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  *value = 132;
  return cudaSuccess;
}

inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* made, unsigned) {
  *made = new mscclc::cuda::host::Stream;
  return cudaSuccess;
}
inline cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return cudaSuccess;
}
inline cudaError_t cudaDeviceSynchronize() {
  return mscclc::cuda::host::Gpu::get().run() ? cudaSuccess : cudaErrorLaunchTimeout;
}
/// Runs the device, unless the stream has no launches: copies are done at once.
inline cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return stream_of(stream).empty() ? cudaSuccess : cudaDeviceSynchronize();
}

inline cudaError_t cudaLaunchHostFunc(cudaStream_t stream, void (*function)(void*), void* data) {
  mscclc::cuda::host::Gpu::get().launch(stream_of(stream), {}, [=] { function(data); });
  return cudaSuccess;
}

/// As on the newest device.
template <class Function>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, Function*) {
  *attributes = {90, 90, 0};
  return cudaSuccess;
}
/// Fibers have a stack of their own.
inline cudaError_t cudaDeviceGetLimit(size_t* bytes, cudaLimit) {
  *bytes = 1024;
  return cudaSuccess;
}
inline cudaError_t cudaDeviceSetLimit(cudaLimit, size_t) { return cudaSuccess; }
inline cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}
inline cudaError_t cudaDriverGetVersion(int* version) { return cudaRuntimeGetVersion(version); }
template <class Function>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Function*, int, size_t) {
  *blocks = 2;
  return cudaSuccess;
}

/// Launches a kernel with these arguments, which are copied.
template <class Arguments>
cudaError_t start_kernel(const cudaLaunchConfig_t& config, void (*kernel)(Arguments),
                         const Arguments& arguments) {
  const mscclc::cuda::host::Shape shape = {
      config.gridDim.x, config.blockDim.x, static_cast<uint32_t>(config.dynamicSmemBytes),
      config.numAttrs != 0 && config.attrs->val.programmaticStreamSerializationAllowed != 0};
  mscclc::cuda::host::Gpu::get().launch(stream_of(config.stream), shape,
                                        [kernel, arguments] { kernel(arguments); });
  return cudaSuccess;
}
