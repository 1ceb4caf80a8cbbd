// What NVML says of GPUs. The driver answers for GPUs that CUDA_VISIBLE_DEVICES shows this process;
// NVML, the library that nvidia-smi uses, knows all of the machine, and what joins it to others.
// Loaded at run time.
#pragma once

#include <functional>
#include <optional>

#include "runtime/devices/cuda/driver/abi.h"

namespace mscclc::cuda {

/// Of two GPUs of this machine.
struct NvmlLink {
  bool access, atomics, nvlink;
  bool instance = false;  ///< one is a MIG instance, which reaches no other
};

/// nullopt: NVML is not there, or does not know.
using AskNvml = std::function<std::optional<NvmlLink>(const abi::Uuid& from, const abi::Uuid& to)>;

/// The GPUs of several machines that NVLink joins: those of one clique of one cluster.
struct Fabric {
  abi::Uuid cluster = {};
  uint32_t clique = 0;
  bool operator==(const Fabric&) const = default;
};

/// That of a GPU of this machine. nullopt: it is in none, or NVML is not there, or does not know.
using AskFabric = std::function<std::optional<Fabric>(const abi::Uuid& gpu)>;

/// nvmlGpuFabricInfo_v2_t.
struct NvmlFabricInfo {
  unsigned version = 0;
  abi::Uuid cluster = {};
  int status = 0;
  unsigned clique = 0;
  unsigned char state = 0;
  unsigned health = 0;
};

/// Functions of NVML, by their ABI. Each gives 0 where it has done what was asked.
struct Nvml {
  using Gpu = struct NvmlGpuObject*;
  int (*init)() = nullptr;
  int (*find)(const char* uuid, Gpu* gpu) = nullptr;
  int (*status)(Gpu from, Gpu to, int capability, int* status) = nullptr;
  int (*fabric)(Gpu gpu, NvmlFabricInfo* info) = nullptr;  ///< nullptr: older ones have none

  std::optional<NvmlLink> link(const abi::Uuid& from, const abi::Uuid& to) const;
  std::optional<Fabric> fabric_of(const abi::Uuid& gpu) const;
};

/// These ask the machine's own.
std::optional<NvmlLink> ask_nvml(const abi::Uuid& from, const abi::Uuid& to);
std::optional<Fabric> ask_fabric(const abi::Uuid& gpu);

}  // namespace mscclc::cuda
