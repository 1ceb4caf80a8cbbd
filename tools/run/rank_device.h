// The device of a rank that a command starts: a GPU, or the host device.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "ir/diagnostics/diagnostic.h"
#include "runtime/api/device.h"

namespace mscclc {

struct RankDevices {
  bool gpus = false;                       ///< else the host device
  std::optional<uint32_t> ranks_per_node;  ///< the machine is cut into nodes; nullopt: it is one
  std::string lane = {};  ///< of the host device: sockets or verbs; "": as MSCCLC_LANE says
};

/// The device of a rank that is number `local` of those on this machine. With fewer GPUs than ranks
/// several share one. To be called in the rank's own thread. nullptr: reported.
[[nodiscard]] std::shared_ptr<Device> open_rank_device(const RankDevices& devices, uint32_t rank,
                                                       uint32_t local, Diagnostics& diagnostics);

}  // namespace mscclc
