// What NVML says of two GPUs. The driver answers for GPUs that CUDA_VISIBLE_DEVICES shows this
// process; NVML, the library that nvidia-smi uses, knows all of the machine. Loaded at run time.
#pragma once

#include <functional>
#include <optional>

#include "runtime/devices/cuda/driver/abi.h"

namespace mscclc::cuda {

/// Of two GPUs of this machine.
struct NvmlLink {
  bool access, atomics, nvlink;
};

/// nullopt: NVML is not there, or does not know.
using AskNvml = std::function<std::optional<NvmlLink>(const abi::Uuid& from, const abi::Uuid& to)>;

/// Asks the machine's own.
std::optional<NvmlLink> ask_nvml(const abi::Uuid& from, const abi::Uuid& to);

}  // namespace mscclc::cuda
