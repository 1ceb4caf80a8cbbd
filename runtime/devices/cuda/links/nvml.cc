#include "runtime/devices/cuda/links/nvml.h"

#include <dlfcn.h>

#include <optional>

#include "runtime/devices/cuda/links/links.h"

namespace mscclc::cuda {
namespace {

using NvmlDevice = struct NvmlDeviceObject*;
enum Capability : int {
  kRead = 0,
  kWrite = 1,
  kNvlink = 2,
  kAtomics = 3
};                        // nvmlGpuP2PCapsIndex_t
constexpr int kFine = 0;  // NVML_SUCCESS, NVML_P2P_STATUS_OK

struct Nvml {
  int (*init)() = nullptr;
  int (*find)(const char* uuid, NvmlDevice* device) = nullptr;
  int (*status)(NvmlDevice from, NvmlDevice to, int capability, int* status) = nullptr;
};

template <class F>
void look_up(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
}

/// nullopt: there is none. Never unloaded, as nothing else here is.
std::optional<Nvml> load() {
  void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return std::nullopt;
  Nvml nvml;
  look_up(library, "nvmlInit_v2", nvml.init);
  look_up(library, "nvmlDeviceGetHandleByUUID", nvml.find);
  look_up(library, "nvmlDeviceGetP2PStatus", nvml.status);
  const bool ready = nvml.init != nullptr && nvml.find != nullptr && nvml.status != nullptr &&
                     nvml.init() == kFine;
  return ready ? std::optional(nvml) : std::nullopt;
}

}  // namespace

std::optional<NvmlLink> ask_nvml(const abi::Uuid& from, const abi::Uuid& to) {
  static const std::optional<Nvml> nvml = load();
  NvmlDevice a = nullptr, b = nullptr;
  if (!nvml || nvml->find(text_of(from).c_str(), &a) != kFine ||
      nvml->find(text_of(to).c_str(), &b) != kFine) {
    return std::nullopt;
  }
  const auto has = [&](Capability capability) {
    int status = -1;
    return nvml->status(a, b, capability, &status) == kFine && status == kFine;
  };
  return NvmlLink{
      .access = has(kRead) && has(kWrite), .atomics = has(kAtomics), .nvlink = has(kNvlink)};
}

}  // namespace mscclc::cuda
