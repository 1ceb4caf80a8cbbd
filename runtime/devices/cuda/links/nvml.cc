#include "runtime/devices/cuda/links/nvml.h"

#include <dlfcn.h>

#include <optional>

#include "runtime/devices/cuda/links/links.h"

namespace mscclc::cuda {
namespace {

enum Capability : int {
  kRead = 0,
  kWrite = 1,
  kNvlink = 2,
  kAtomics = 3
};                        // nvmlGpuP2PCapsIndex_t
constexpr int kFine = 0;  // NVML_SUCCESS, NVML_P2P_STATUS_OK
constexpr unsigned kFabricVersion = sizeof(NvmlFabricInfo) | 2u << 24;  // nvmlGpuFabricInfo_v2
constexpr unsigned char kCompleted = 3;  // NVML_GPU_FABRIC_STATE_COMPLETED
static_assert(kFabricVersion == 0x2000024);

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
  look_up(library, "nvmlDeviceGetGpuFabricInfoV", nvml.fabric);
  const bool ready = nvml.init != nullptr && nvml.find != nullptr && nvml.status != nullptr &&
                     nvml.init() == kFine;
  return ready ? std::optional(nvml) : std::nullopt;
}

const std::optional<Nvml>& machines_own() {
  static const std::optional<Nvml> nvml = load();
  return nvml;
}

enum class Found : uint8_t { no, gpu, instance };

/// By the name of a GPU, or of a part of one, as NVML has either.
Found look_for(const Nvml& nvml, const abi::Uuid& uuid, Nvml::Gpu& gpu) {
  if (nvml.find(text_of(uuid).c_str(), &gpu) == kFine) return Found::gpu;
  return nvml.find(text_of(uuid, "MIG").c_str(), &gpu) == kFine ? Found::instance : Found::no;
}

}  // namespace

std::optional<NvmlLink> Nvml::link(const abi::Uuid& from, const abi::Uuid& to) const {
  Gpu a = nullptr, b = nullptr;
  const Found first = look_for(*this, from, a), second = look_for(*this, to, b);
  if (first == Found::no || second == Found::no) return std::nullopt;
  if (first == Found::instance || second == Found::instance) {
    return NvmlLink{.access = false, .atomics = false, .nvlink = false, .instance = true};
  }
  const auto has = [&](Capability capability) {
    int said = -1;
    return status(a, b, capability, &said) == kFine && said == kFine;
  };
  return NvmlLink{
      .access = has(kRead) && has(kWrite), .atomics = has(kAtomics), .nvlink = has(kNvlink)};
}

// A machine of its own may have completed a fabric, too, that has no UUID.
std::optional<Fabric> Nvml::fabric_of(const abi::Uuid& gpu) const {
  Gpu found = nullptr;
  NvmlFabricInfo info;
  info.version = kFabricVersion;
  if (fabric == nullptr || find(text_of(gpu).c_str(), &found) != kFine ||
      fabric(found, &info) != kFine || info.status != kFine || info.state != kCompleted ||
      info.cluster == abi::Uuid{}) {
    return std::nullopt;
  }
  return Fabric{info.cluster, info.clique};
}

std::optional<NvmlLink> ask_nvml(const abi::Uuid& from, const abi::Uuid& to) {
  const auto& nvml = machines_own();
  return nvml ? nvml->link(from, to) : std::nullopt;
}

std::optional<Fabric> ask_fabric(const abi::Uuid& gpu) {
  const auto& nvml = machines_own();
  return nvml ? nvml->fabric_of(gpu) : std::nullopt;
}

}  // namespace mscclc::cuda
