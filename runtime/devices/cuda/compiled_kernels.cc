#include "runtime/devices/cuda/compiled_kernels.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/devices/cuda/cubin_image.h"

namespace mscclc::cuda {
namespace {

/// A kernel that was found, with these arguments.
CompiledKernel with_arguments(CompiledKernels::Kernel kernel, const void* arguments) {
  CompiledKernel own = *static_cast<const CompiledKernel*>(kernel);
  own.arguments = arguments;
  return own;
}

/// A launch of the plan's blocks, each of which is `own.cluster` CUDA blocks.
abi::LaunchConfig config_of(const CompiledKernel& own, const device::LaunchPlan& plan) {
  return {.grid = {plan.blocks * own.cluster, 1, 1},
          .block = {plan.threads / own.cluster, 1, 1},
          .shared_bytes = 0,
          .stream = nullptr,
          .attributes = nullptr,
          .attribute_count = 0};
}

}  // namespace

std::string architecture_of(const PrimaryContext& context) {
  return fmt::format("sm_{}{}", context.attribute(abi::kComputeCapabilityMajor),
                     context.attribute(abi::kComputeCapabilityMinor));
}

Result<std::unique_ptr<CudaCompiledKernels>> CudaCompiledKernels::load(
    CudaDevice& device, std::span<const uint8_t> image) {
  if (auto fault = fault_of_cubin(image)) return *std::move(fault);
  const Driver& driver = device.context()->driver();
  const CurrentContext current(*device.context());
  const OutsideCapture outside(driver);
  if (!current.is_set()) return Error{"the GPU's context cannot be made current"};
  abi::Module module = nullptr;
  if (const abi::Result result = driver.ModuleLoadData(&module, image.data());
      result != abi::kSuccess) {
    return Error{text_of(driver, result)};
  }
  return std::unique_ptr<CudaCompiledKernels>(new CudaCompiledKernels(device, module));
}

CudaCompiledKernels::~CudaCompiledKernels() {
  const PrimaryContext& context = *device_.context();
  const CurrentContext current(context);
  const OutsideCapture outside(context.driver());
  if (current.is_set()) context.driver().ModuleUnload(module_);
}

CompiledKernels::Kernel CudaCompiledKernels::find(const std::string& name) const {
  const PrimaryContext& context = *device_.context();
  const CurrentContext current(context);
  const OutsideCapture outside(context.driver());
  abi::Function function = nullptr;
  const bool found = current.is_set() && context.driver().ModuleGetFunction(
                                             &function, module_, name.c_str()) == abi::kSuccess;
  if (!found) return nullptr;
  int cluster = 0;
  const abi::Result asked =
      context.driver().FuncGetAttribute(&cluster, abi::kRequiredClusterWidth, function);
  if (asked != abi::kSuccess) return nullptr;
  const CompiledKernel made = {function, nullptr, static_cast<uint32_t>(std::max(1, cluster))};
  const std::lock_guard lock(mutex_);
  return &found_.try_emplace(name, made).first->second;
}

std::optional<uint32_t> CudaCompiledKernels::fits(Kernel kernel, const device::LaunchPlan& plan,
                                                  Diagnostics& diagnostics) {
  return device_.fits(with_arguments(kernel, nullptr), plan, diagnostics);
}

bool CudaCompiledKernels::launch(Kernel kernel, const device::LaunchPlan& plan,
                                 const void* arguments, StreamHandle stream,
                                 Diagnostics& diagnostics) {
  return device_.launch(with_arguments(kernel, arguments), plan, stream, diagnostics);
}

Result<void> start_kernel(const PrimaryContext& context, const CompiledKernel& own,
                          const device::LaunchPlan& plan, abi::Stream stream) {
  abi::LaunchAttribute early = {};
  early.id = abi::kProgrammaticStreamSerialization;
  early.value[0] = 1;
  abi::LaunchConfig config = config_of(own, plan);
  config.stream = stream;
  config.attributes = &early;
  config.attribute_count = plan.early ? 1 : 0;
  // The driver copies both: the kernel's are constant.
  void* parameters[] = {const_cast<device::LaunchPlan*>(&plan), const_cast<void*>(own.arguments)};
  const abi::Result result =
      context.driver().LaunchKernelEx(&config, own.function, parameters, nullptr);
  if (result != abi::kSuccess) return Error{text_of(context.driver(), result)};
  return {};
}

Result<uint32_t> most_resident_blocks(const PrimaryContext& context, const CompiledKernel& own,
                                      const device::LaunchPlan& plan) {
  int blocks = 0;
  if (own.cluster > 1) {
    const abi::LaunchConfig config = config_of(own, plan);
    const abi::Result result =
        context.driver().OccupancyMaxActiveClusters(&blocks, own.function, &config);
    if (result != abi::kSuccess) return Error{text_of(context.driver(), result)};
    return static_cast<uint32_t>(blocks);
  }
  const abi::Result result = context.driver().OccupancyMaxActiveBlocksPerMultiprocessor(
      &blocks, own.function, static_cast<int>(plan.threads), 0);
  if (result != abi::kSuccess) return Error{text_of(context.driver(), result)};
  return static_cast<uint32_t>(blocks) *
         static_cast<uint32_t>(context.attribute(abi::kMultiprocessorCount));
}

}  // namespace mscclc::cuda
