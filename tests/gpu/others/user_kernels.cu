#include <cuda_runtime.h>

#include <thread>

#include "tests/gpu/others/user_kernels.h"

namespace mscclc::testing {
namespace {

__device__ uint64_t nanoseconds() {
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__global__ void spin(bool waits, bool triggers, uint64_t time) {
#if __CUDA_ARCH__ >= 900
  if (triggers) asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  if (waits) asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  const uint64_t begin = nanoseconds();
  while (nanoseconds() - begin < time) {
  }
}

bool ok(cudaError_t result, const char* attempt, Diagnostics& diagnostics) {
  if (result == cudaSuccess) return true;
  diagnostics.error("cuda", {},
                    std::string("cannot ") + attempt + ": " + cudaGetErrorString(result));
  return false;
}

cudaError_t launch_spin(cudaStream_t stream, Manner manner, uint64_t time) {
  int device = 0, processors = 0, shared = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error != cudaSuccess) return error;
  cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  error = cudaFuncSetAttribute(spin, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
  if (error != cudaSuccess) return error;
  cudaLaunchAttribute early = {};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(processors));
  config.blockDim = dim3(1024);
  config.dynamicSmemBytes = static_cast<size_t>(shared);
  config.stream = stream;
  config.attrs = &early;
  config.numAttrs = manner == Manner::early ? 1 : 0;
  return cudaLaunchKernelEx(&config, spin, manner == Manner::early, manner == Manner::triggers,
                            time);
}

void sleep(void* time) {
  const auto* const wanted = static_cast<std::chrono::milliseconds*>(time);
  std::this_thread::sleep_for(*wanted);
}

}  // namespace

bool fill_gpu(StreamHandle stream, Manner manner, std::chrono::microseconds time,
              Diagnostics& diagnostics) {
  const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
  return ok(
      launch_spin(static_cast<cudaStream_t>(stream), manner, static_cast<uint64_t>(nanoseconds)),
      "launch a kernel that fills the GPU", diagnostics);
}

bool hold(StreamHandle stream, std::chrono::milliseconds time, Diagnostics& diagnostics) {
  // A graph may call it again at any time: it is never given back.
  auto* const wanted = new std::chrono::milliseconds(time);
  return ok(cudaLaunchHostFunc(static_cast<cudaStream_t>(stream), sleep, wanted), "hold a stream",
            diagnostics);
}

}  // namespace mscclc::testing
