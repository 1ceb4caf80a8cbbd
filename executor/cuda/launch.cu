// Picks the kernel for a launch, and starts it.
#include <cuda_runtime.h>

#include <cstring>

#include "executor/cuda/kernels.cuh"

namespace mscclc::cuda {
namespace {

bool adds_up_as_usual(const LaunchPlan& plan) {
  switch (plan.dtype) {
#define DTYPE(name, bytes, kind, accumulate_in, aliases) \
  case Dtype::name:                                      \
    return plan.accumulate == Dtype::accumulate_in;
#include "ir/dtypes.def"
#undef DTYPE
  }
  return false;
}

Kernel kernel_for(const LaunchPlan& plan) {
  // Only packed programs are made for kernels that do not hold everything.
  const uint32_t uses = plan.programs == nullptr ? device::kUsesAll : plan.uses;
  Kernel kernel = nullptr;
  if ((uses & device::kUsesSums) == 0) {
    kernel = kernel_moves(uses);
  } else if (!adds_up_as_usual(plan)) {
    kernel = nullptr;
  } else if (plan.dtype == Dtype::f32) {
    kernel = kernel_f32(uses);
  } else if (plan.dtype == Dtype::f16) {
    kernel = kernel_f16(uses);
  } else if (plan.dtype == Dtype::bf16) {
    kernel = kernel_bf16(uses);
  }
  return kernel == nullptr ? kernel_any() : kernel;
}

uint32_t shared_bytes(const LaunchPlan& plan) {
  const bool shared = plan.programs != nullptr && plan.program_bytes <= kMostShared;
  return shared ? plan.program_bytes : 0;
}

bool is_valid(const LaunchPlan& plan) {
  const uint64_t programs = uint64_t{plan.blocks} * plan.program_bytes;
  return plan.blocks != 0 && plan.program_bytes % 16 == 0 &&
         (!plan.carried || (plan.programs != nullptr && programs <= device::kMostCarried));
}

}  // namespace

int launch(const LaunchPlan& plan, void* stream) {
  if (!is_valid(plan)) return cudaErrorInvalidConfiguration;
  Arguments arguments;
  arguments.plan = plan;
  if (plan.one != nullptr) arguments.one = *plan.one;
  if (plan.carried) {
    std::memcpy(arguments.programs, plan.programs, size_t{plan.blocks} * plan.program_bytes);
  }
  void* parameters[] = {&arguments};
  return cudaLaunchKernel(reinterpret_cast<const void*>(kernel_for(plan)), dim3(plan.blocks),
                          dim3(block_threads(plan.threads)), parameters, shared_bytes(plan),
                          static_cast<cudaStream_t>(stream));
}

uint32_t most_resident_blocks(const LaunchPlan& plan, int* error) {
  int device = 0, processors = 0, blocks = 0;
  *error = is_valid(plan) ? cudaGetDevice(&device) : cudaErrorInvalidConfiguration;
  if (*error != cudaSuccess) return 0;
  *error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  if (*error != cudaSuccess) return 0;
  *error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
      &blocks, reinterpret_cast<const void*>(kernel_for(plan)),
      static_cast<int>(block_threads(plan.threads)), shared_bytes(plan));
  return *error == cudaSuccess ? static_cast<uint32_t>(blocks) * processors : 0;
}

}  // namespace mscclc::cuda
