// The fake driver's modules: what a cubin holds is a text that says for which GPUs it is, and names
// its kernels, one a line:
//
//   sm_90
//   mscclc_..._f32
//   mscclc_..._bf16*2    of clusters of 2 CUDA blocks
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fakes/cuda/fake_streams.h"

namespace mscclc::cuda {

/// An image of kernels that its ModuleLoadData() takes: a cubin that holds this text.
std::string fake_cubin(std::string_view text);

class FakeModules : public virtual FakeStreams {
 public:
  /// A launch of a module's kernel.
  struct KernelLaunch {
    abi::Function function;
    uint32_t blocks, threads;
    bool early;
  };
  std::vector<KernelLaunch> kernel_launches() const;
  /// How to find, in the first parameter of a module's kernel, the count that it adds to.
  void set_begun_of(std::function<abi::Address(const void* plan)> begun_of);

  abi::Result ModuleLoadData(abi::Module* module, const void* image);
  abi::Result ModuleUnload(abi::Module module);
  abi::Result ModuleGetFunction(abi::Function* function, abi::Module module, const char* name);
  abi::Result OccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, abi::Function function,
                                                        int threads, size_t shared_bytes);
  abi::Result OccupancyMaxActiveClusters(int* clusters, abi::Function function,
                                         const abi::LaunchConfig* config);
  abi::Result FuncGetAttribute(int* value, abi::FunctionAttribute attribute,
                               abi::Function function);
  abi::Result LaunchKernelEx(const abi::LaunchConfig* config, abi::Function function,
                             void** parameters, void** extra);

 protected:
  FakeModules() = default;
  ~FakeModules() = default;

 private:
  using ModuleEntry = fake::ModuleEntry;

  bool is_function(abi::Function function);

  std::vector<KernelLaunch> kernel_launches_;
  std::map<abi::Function, uint32_t> clusters_;  ///< of kernels that have them
  std::function<abi::Address(const void* plan)> begun_of_;
};

}  // namespace mscclc::cuda
