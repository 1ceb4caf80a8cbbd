// Lanes by RDMA between ranks without GPUs. What makes them is not needed where ranks are on one
// machine or lanes go over sockets, so a device does not depend on it: a program has such lanes if
// it links what provides them (runtime/network/verbs:host_lanes, as //runtime does).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "ir/diagnostics/diagnostic.h"
#include "runtime/api/lane.h"
#include "runtime/network/exposed_memory.h"
#include "runtime/network/sockets/socket_net.h"
#include "runtime/support/memory/attached_resources.h"

namespace mscclc::net {

/// An allocation of this rank, pieces of which may be registered with a network device.
struct Allocation {
  uint8_t* data = nullptr;
  uint64_t bytes = 0;
  AttachedResources* attached = nullptr;        ///< what is registered lives here
  std::shared_ptr<const void> owner = nullptr;  ///< keeps it
};

/// The allocation in which these bytes lie; nullopt: it is of another allocator, which may free it
/// at any time. Called by the thread that gives a lane orders.
using FindAllocation = std::function<std::optional<Allocation>(const void* from, uint64_t bytes)>;

/// The lanes by RDMA of one device. Thread safety: immutable.
class Rdma {
 public:
  virtual ~Rdma() = default;

  /// Lets peers write these bytes of the allocation as long as it lives. nullopt: reported
  /// (lane-failed).
  [[nodiscard]] virtual std::optional<DeviceKey> expose(const Allocation& allocation, uint8_t* data,
                                                        uint64_t bytes,
                                                        Diagnostics& diagnostics) const = 0;
  /// The far end of the lane from `peer`, to `memory` of this rank. nullptr: reported.
  [[nodiscard]] virtual std::unique_ptr<LaneEnd> await_lane(
      const LanePeer& peer, std::shared_ptr<ExposedMemory> memory) const = 0;
  /// The lane to `peer`. nullptr: reported (lane-failed).
  [[nodiscard]] virtual std::unique_ptr<Lane> open_lane(const LanePeer& peer, FindAllocation find,
                                                        std::chrono::milliseconds timeout,
                                                        Diagnostics& diagnostics) const = 0;
};

/// Makes them for one device, whose ranks meet at `net`. `prefer`: which of several ports that fit.
/// nullptr: reported. Defined by what provides them; weak, as a program may link nothing that does.
[[gnu::weak]] std::shared_ptr<const Rdma> start_linked_rdma(uint32_t prefer,
                                                            std::shared_ptr<SocketNet> net,
                                                            Diagnostics& diagnostics);

/// The same; nullptr: reported (no-verbs), also in a program that links nothing that provides it.
[[nodiscard]] std::shared_ptr<const Rdma> start_rdma(uint32_t prefer,
                                                     std::shared_ptr<SocketNet> net,
                                                     Diagnostics& diagnostics);

}  // namespace mscclc::net
