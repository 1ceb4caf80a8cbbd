#include "tests/fakes/cuda/fake_modules.h"

#include <fmt/format.h>

#include <mutex>
#include <sstream>

namespace mscclc::cuda {
namespace {

constexpr size_t kHeaderBytes = 64;

}  // namespace

std::string fake_cubin(std::string_view text) {
  std::string cubin("\177ELF\2\1\1", 7);
  cubin.resize(kHeaderBytes);  // no segments, no sections
  cubin[18] = static_cast<char>(190);
  return cubin.append(text);
}

abi::Result FakeModules::ModuleLoadData(abi::Module* module, const void* image) {
  const int device = current_device();
  if (device < 0) return misuse("loads a module without a context", abi::kInvalidContext);
  std::istringstream text(static_cast<const char*>(image) + kHeaderBytes);
  std::string word;
  text >> word;
  if (word.rfind("sm_", 0) != 0) return abi::kInvalidImage;
  if (word != fmt::format("sm_{}0", options().capability)) return abi::kNoBinaryForGpu;
  ModuleEntry entry = {.device = device, .kernels = {}};
  while (text >> word) {
    const auto function = reinterpret_cast<abi::Function>(static_cast<uintptr_t>(new_number()));
    const size_t star = word.find('*');  // sources have some of their own
    const size_t digits = star == word.npos ? word.npos : star + 1;
    const bool clusters = digits < word.size() && word[digits] >= '0' && word[digits] <= '9';
    if (clusters) clusters_[function] = std::stoul(word.substr(digits));
    entry.kernels[clusters ? word.substr(0, star) : word] = function;
  }
  *module = reinterpret_cast<abi::Module>(static_cast<uintptr_t>(new_number()));
  process().modules[*module] = std::move(entry);
  return abi::kSuccess;
}

abi::Result FakeModules::ModuleUnload(abi::Module module) {
  if (process().modules.erase(module) == 1) return abi::kSuccess;
  return misuse("unloads a module that there is not", abi::kInvalidHandle);
}

abi::Result FakeModules::ModuleGetFunction(abi::Function* function, abi::Module module,
                                           const char* name) {
  const auto found = process().modules.find(module);
  if (found == process().modules.end()) {
    return misuse("looks in a module that there is not", abi::kInvalidHandle);
  }
  const auto kernel = found->second.kernels.find(name);
  if (kernel == found->second.kernels.end()) return abi::kNotFound;
  *function = kernel->second;
  return abi::kSuccess;
}

bool FakeModules::is_function(abi::Function function) {
  for (const auto& [module, entry] : process().modules) {
    for (const auto& [name, kernel] : entry.kernels) {
      if (kernel == function) return true;
    }
  }
  return false;
}

abi::Result FakeModules::OccupancyMaxActiveBlocksPerMultiprocessor(int* blocks,
                                                                   abi::Function function,
                                                                   int threads, size_t) {
  if (!is_function(function)) return misuse("asks of no kernel", abi::kInvalidHandle);
  *blocks = 2048 / threads;
  return abi::kSuccess;
}

abi::Result FakeModules::FuncGetAttribute(int* value, abi::FunctionAttribute attribute,
                                          abi::Function function) {
  if (!is_function(function)) return misuse("asks of no kernel", abi::kInvalidHandle);
  if (attribute != abi::kRequiredClusterWidth)
    return misuse("asks for what the fake lacks", abi::kInvalidValue);
  const auto cluster = clusters_.find(function);
  *value = cluster == clusters_.end() ? 0 : static_cast<int>(cluster->second);
  return abi::kSuccess;
}

abi::Result FakeModules::OccupancyMaxActiveClusters(int* clusters, abi::Function function,
                                                    const abi::LaunchConfig* config) {
  const auto cluster = clusters_.find(function);
  if (cluster == clusters_.end()) return misuse("asks for clusters of none", abi::kInvalidHandle);
  *clusters =
      static_cast<int>(2048 / config->block[0] * options().multiprocessors / cluster->second);
  return abi::kSuccess;
}

abi::Result FakeModules::LaunchKernelEx(const abi::LaunchConfig* config, abi::Function function,
                                        void** parameters, void**) {
  if (!is_function(function)) return misuse("launches no kernel", abi::kInvalidHandle);
  if (process().streams.count(config->stream) == 0) {
    return misuse("launches on a stream that there is not", abi::kInvalidHandle);
  }
  kernel_launches_.push_back({function, config->grid[0], config->block[0],
                              config->attribute_count == 1 && config->attributes->value[0] == 1});
  const auto cluster = clusters_.find(function);
  const uint32_t each = cluster == clusters_.end() ? 1 : cluster->second;
  enqueue_launch(config->stream, begun_of_ ? begun_of_(parameters[0]) : 0, config->grid[0] / each);
  return abi::kSuccess;
}

void FakeModules::set_begun_of(std::function<abi::Address(const void* plan)> begun_of) {
  const std::lock_guard lock(mutex());
  begun_of_ = std::move(begun_of);
}

std::vector<FakeModules::KernelLaunch> FakeModules::kernel_launches() const {
  const std::lock_guard lock(mutex());
  return kernel_launches_;
}

}  // namespace mscclc::cuda
