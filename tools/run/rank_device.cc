#include "tools/run/rank_device.h"

#include "runtime/api/gpu.h"
#include "runtime/api/host_device.h"

namespace mscclc {
namespace {

/// nullopt: as the environment says.
std::optional<FarLanes> far_lanes(const std::string& lane) {
  if (lane.empty()) return std::nullopt;
  return lane == "verbs" ? FarLanes::verbs : FarLanes::sockets;
}

}  // namespace

std::shared_ptr<Device> open_rank_device(const RankDevices& devices, uint32_t rank, uint32_t local,
                                         Diagnostics& diagnostics) {
  std::optional<uint32_t> node;
  if (devices.ranks_per_node) node = rank / *devices.ranks_per_node;
  if (!devices.gpus) {
    return make_host_device(diagnostics, {}, HostLanes::copies, node, far_lanes(devices.lane));
  }
  const int gpus = cuda::count_gpus(diagnostics);
  if (gpus == 0) return nullptr;
  std::shared_ptr<Device> device =
      cuda::open_gpu(static_cast<int>(local) % gpus, diagnostics, node);
  if (device != nullptr && !device->bind_thread(diagnostics)) device = nullptr;
  return device;
}

}  // namespace mscclc
