// Picks the kernel for a launch, and starts it.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstring>

#include "executor/cuda/kernels.cuh"

namespace mscclc::cuda {
namespace {

bool adds_up_as_usual(const LaunchPlan& plan) {
  switch (plan.dtype) {
#define DTYPE(name, bytes, kind, accumulate_in, aliases) \
  case Dtype::name:                                      \
    return plan.accumulate == Dtype::accumulate_in;
#include "ir/ops/dtypes.def"
#undef DTYPE
  }
  return false;
}

bool adds(ReduceOp reduce) { return reduce == ReduceOp::sum || reduce == ReduceOp::avg; }

constexpr uint32_t kSentinels =
    device::uses_of_formats([](const PacketFormatInfo& row) { return is_sentinel(row.format); });

/// The fast kernel of a plan's type, if there is one. `in_short`: kernels.cuh.
Kernel fast_kernel_for(const LaunchPlan& plan, uint32_t in_short) {
  // Sentinels of 8 bytes are rare.
  if ((plan.uses & kSentinels) != 0 && info(plan.dtype).bytes == 8) return {};
  // Longer programs are not settled in shared memory.
  if (plan.program_bytes > kMaxShared) return {};
  if ((plan.uses & device::kUsesSums) == 0) return kernel_moves(plan.uses, in_short);
  if (!adds_up_as_usual(plan) || !adds(plan.reduce)) return {};
  switch (plan.dtype) {
#define FAST_DTYPE(name) \
  case Dtype::name:      \
    return kernel_##name(plan.uses, in_short);
#include "executor/cuda/fast_dtypes.def"
#undef FAST_DTYPE
    default:
      return {};
  }
}

Kernel fast_kernel_for(const LaunchPlan& plan) {
  if (plan.in_short != nullptr && plan.stamps == nullptr) {
    const Kernel kernel = fast_kernel_for(plan, plan.in_short->operands);
    if (kernel.function != nullptr) return kernel;
  }
  return fast_kernel_for(plan, 0);
}

/// Calls fn(kernel) with every kernel that there is.
template <class Fn>
void for_each_kernel(Fn fn) {
  Kernel (*const arithmetics[])(uint32_t, uint32_t) = {
      kernel_moves,
#define FAST_DTYPE(name) kernel_##name,
#include "executor/cuda/fast_dtypes.def"
#undef FAST_DTYPE
  };
  for (Kernel (*const arithmetic)(uint32_t, uint32_t) : arithmetics) {
    for (const uint32_t uneven : {uint32_t{0}, uint32_t{device::kUsesUneven}}) {
      fn(arithmetic(uneven, 0));
      fn(arithmetic(uint32_t{device::kUsesProxy} | uneven, 0));
      for (const PacketFormatInfo& f : packet_formats()) {
        fn(arithmetic(device::uses_of(f.format) | uneven, 0));
      }
    }
    for (const PacketFormatInfo& f : packet_formats()) {
      for (const uint32_t operands : {2u, device::kShortOperands}) {
        fn(arithmetic(device::uses_of(f.format), operands));
      }
    }
  }
  fn(kernel_any());
  fn(kernel_trees());
}

/// The first release whose captures know programmatic dependent launches.
constexpr int kEarlyInCaptures = 12030;

Kernel kernel_for(const LaunchPlan& plan) {
  const Kernel kernel = fast_kernel_for(plan);
  if (kernel.function != nullptr) return kernel;
  return (plan.uses & device::kUsesTrees) != 0 ? kernel_trees() : kernel_any();
}

uint32_t threads_of(const LaunchPlan& plan, const Kernel& kernel) {
  return std::min(block_threads(plan.threads), kernel.threads);
}

/// May launches of the kernel begin early?
bool can_be_early(const Kernel& kernel) { return !kernel.takes_short || kernel.early != nullptr; }

auto code_of(const Kernel& kernel, bool early) {
  return early && kernel.early != nullptr ? kernel.early : kernel.function;
}

uint32_t shared_bytes(const LaunchPlan& plan, const Kernel& kernel) {
  return plan.program_bytes <= kMaxShared && !kernel.takes_short ? plan.program_bytes : 0;
}

bool is_valid(const LaunchPlan& plan) {
  const uint64_t programs = uint64_t{plan.blocks} * plan.program_bytes;
  return plan.blocks != 0 && plan.program_bytes % 16 == 0 &&
         plan.call_counts <= device::kMaxCounts &&
         (!plan.carried || programs <= device::kMaxCarried);
}

}  // namespace

int launch(const LaunchPlan& plan, void* stream) {
  if (!is_valid(plan)) return cudaErrorInvalidConfiguration;
  Arguments arguments;
  arguments.plan = plan;
  const Kernel kernel = kernel_for(arguments.plan);
  const bool early = plan.early && can_be_early(kernel);
  if (kernel.takes_short) {
    std::memcpy(arguments.programs, plan.in_short, sizeof *plan.in_short);
  } else if (plan.carried) {
    std::memcpy(arguments.programs, plan.programs, size_t{plan.blocks} * plan.program_bytes);
  }
  cudaLaunchAttribute attribute = may_begin_early();
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(plan.blocks);
  config.blockDim = dim3(threads_of(plan, kernel));
  config.dynamicSmemBytes = shared_bytes(plan, kernel);
  config.stream = static_cast<cudaStream_t>(stream);
  config.attrs = &attribute;
  config.numAttrs = early ? 1 : 0;
  return start_kernel(config, code_of(kernel, early), arguments);
}

// Code that was compiled for older devices does not wait for the kernel ahead (ahead.cuh), also
// where the driver makes it run on newer ones.
int load_kernels(Abilities* abilities) {
  int error = cudaSuccess, runtime = 0, driver = 0;
  bool early = true;
  for_each_kernel([&](const Kernel& kernel) {
    for (const bool is_early : {false, true}) {
      cudaFuncAttributes code = {};
      if (error != cudaSuccess) return;
      error = cudaFuncGetAttributes(&code, code_of(kernel, is_early));
      early = early && code.ptxVersion >= 90 && code.binaryVersion >= 90;
    }
  });
  if (error == cudaSuccess) error = cudaRuntimeGetVersion(&runtime);
  if (error == cudaSuccess) error = cudaDriverGetVersion(&driver);
  if (error != cudaSuccess) return error;
  *abilities = {early, early && runtime >= kEarlyInCaptures && driver >= kEarlyInCaptures};
  return cudaSuccess;
}

int keep_stack() {
  int error = cudaSuccess;
  size_t most = 0, now = 0;
  for_each_kernel([&](const Kernel& kernel) {
    cudaFuncAttributes code = {};
    if (error == cudaSuccess) error = cudaFuncGetAttributes(&code, code_of(kernel, false));
    most = std::max(most, code.localSizeBytes);
  });
  if (error == cudaSuccess) error = cudaDeviceGetLimit(&now, cudaLimitStackSize);
  if (error != cudaSuccess || now >= most) return error;
  return cudaDeviceSetLimit(cudaLimitStackSize, most);
}

bool has_fast_kernel(const LaunchPlan& plan) { return fast_kernel_for(plan).function != nullptr; }

uint32_t most_resident_blocks(const LaunchPlan& plan, int* error) {
  int device = 0, processors = 0, least = 0;
  *error = is_valid(plan) ? cudaGetDevice(&device) : cudaErrorInvalidConfiguration;
  if (*error != cudaSuccess) return 0;
  *error = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  if (*error != cudaSuccess) return 0;
  const Kernel kernel = kernel_for(plan);
  for (const bool early : {false, true}) {
    int blocks = 0;
    *error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        &blocks, code_of(kernel, early), static_cast<int>(threads_of(plan, kernel)),
        shared_bytes(plan, kernel));
    if (*error != cudaSuccess) return 0;
    least = early ? std::min(least, blocks) : blocks;
  }
  return static_cast<uint32_t>(least) * processors;
}

}  // namespace mscclc::cuda
