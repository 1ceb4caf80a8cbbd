// Kernels that were compiled for one plan (executor/compiled), as a module of the driver.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "ir/support/result.h"
#include "runtime/devices/cuda/device.h"

namespace mscclc::cuda {

/// What cubins for a GPU are called by: "sm_90".
std::string architecture_of(const PrimaryContext& context);

class CudaCompiledKernels final : public CompiledKernels {
 public:
  static Result<std::unique_ptr<CudaCompiledKernels>> load(CudaDevice& device,
                                                           std::span<const uint8_t> image);
  ~CudaCompiledKernels() override;
  Kernel find(const std::string& name) const override;
  std::optional<uint32_t> fits(Kernel kernel, const device::LaunchPlan& plan,
                               Diagnostics& diagnostics) override;
  bool launch(Kernel kernel, const device::LaunchPlan& plan, const void* arguments,
              StreamHandle stream, Diagnostics& diagnostics) override;

 private:
  CudaCompiledKernels(CudaDevice& device, abi::Module module) : device_(device), module_(module) {}

  CudaDevice& device_;
  const abi::Module module_;
  mutable std::mutex mutex_;
  /// Those that were found, by name: what a Kernel points to, without arguments.
  mutable std::map<std::string, CompiledKernel> found_;
};

/// Starts a compiled kernel. REQUIRES: the context is current.
Result<void> start_kernel(const PrimaryContext& context, const CompiledKernel& own,
                          const device::LaunchPlan& plan, abi::Stream stream);

/// Blocks of such a kernel that the GPU holds at once. REQUIRES: the context is current.
Result<uint32_t> most_resident_blocks(const PrimaryContext& context, const CompiledKernel& own,
                                      const device::LaunchPlan& plan);

}  // namespace mscclc::cuda
