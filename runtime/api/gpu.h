// The way to a GPU for programs that run plans: driver, kernel and descriptor server put together.
// In a build without the GPU part it says so.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "runtime/api/device.h"

namespace mscclc::cuda {

/// Why this build cannot open GPUs, in words; "": it can.
std::string why_no_gpu_part();
inline bool has_gpu_part() { return why_no_gpu_part().empty(); }

/// What speaks against opening GPU `ordinal`, and against products on it by cuBLASLt; "": nothing,
/// as far as that can be known while the driver is not initialised, which these do not do.
std::string why_no_gpu(int ordinal);
std::string why_no_cublaslt();

/// GPUs that this process sees; 0 with the reason reported: no-gpu-part (this build has none),
/// or what load_driver() says.
[[nodiscard]] int count_gpus(Diagnostics& diagnostics);

/// A device for one rank on GPU `ordinal`. `node`: simulates that the rank is on this one of
/// several nodes into which the machine is divided. nullptr: reported.
[[nodiscard]] std::unique_ptr<Device> open_gpu(int ordinal, Diagnostics& diagnostics,
                                               std::optional<uint32_t> node = std::nullopt);

}  // namespace mscclc::cuda
