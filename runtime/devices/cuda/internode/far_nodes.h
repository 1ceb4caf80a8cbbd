// A GPU's ranks of other nodes: lanes over sockets or verbs (MSCCLC_LANE) to them and from them,
// and what they learn of memory here.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "runtime/devices/cuda/internode/gpu_counts.h"
#include "runtime/devices/cuda/internode/own_allocations.h"
#include "runtime/devices/cuda/internode/verbs_memory.h"
#include "runtime/devices/cuda/memory/memory.h"
#include "runtime/network/exposed_memory.h"
#include "runtime/network/sockets/socket_net.h"
#include "runtime/support/memory/handle.h"

namespace mscclc::cuda {

/// Does memory lie on a GPU? Memory that CUDA does not know is the host's. nullopt: reported.
std::optional<MemoryPlace> place_of(const PrimaryContext& context, const void* address,
                                    Diagnostics& diagnostics);

/// Thread safety: the device's.
class FarNodes {
 public:
  /// `node`: where this rank is, a text that no other node has.
  /// `own`: what the device allocates.
  FarNodes(SharedContext context, std::string node, std::shared_ptr<OwnAllocations> own)
      : context_(std::move(context)), node_(std::move(node)), own_(std::move(own)) {}

  /// Some ranks are on other nodes.
  void join() { joined_ = true; }
  bool joined() const { return joined_; }

  /// Adds to a handle what lanes need. Memory of other allocators is there as long as the handle's
  /// `keep` lives. False: reported.
  [[nodiscard]] bool expose(const void* address, uint64_t bytes, MemoryHandle& handle,
                            Diagnostics& diagnostics);
  /// Memory of another node, for lanes. `memory` stays nullptr if it is of this one. False:
  /// reported.
  [[nodiscard]] bool reach(const MemoryHandle& handle, std::unique_ptr<Memory>& memory,
                           Diagnostics& diagnostics) const;

  /// Device::await_lane() and Device::open_lane() of peers on other nodes.
  [[nodiscard]] std::unique_ptr<LaneEnd> await_lane(const LanePeer& peer, Diagnostics& diagnostics);
  [[nodiscard]] std::unique_ptr<Lane> open_lane(const LanePeer& peer,
                                                std::chrono::milliseconds timeout,
                                                Diagnostics& diagnostics);

 private:
  [[nodiscard]] bool start(Diagnostics& diagnostics);
  [[nodiscard]] bool start_verbs(Diagnostics& diagnostics);
  /// Lets network devices write memory while it is there. nullptr: reported.
  [[nodiscard]] std::shared_ptr<const VerbsMemory::Exposed> register_memory(
      uint8_t* data, uint64_t bytes, MemoryPlace place, OwnAllocation* own, MemoryHandle& handle,
      Diagnostics& diagnostics);

  const SharedContext context_;
  const std::string node_;
  const std::shared_ptr<OwnAllocations> own_;
  bool joined_ = false;
  std::shared_ptr<net::SocketNet> net_;      ///< nullptr: not needed so far
  std::shared_ptr<VerbsMemory> verbs_;       ///< nullptr: lanes go over sockets
  std::shared_ptr<const GpuCounts> counts_;  ///< with `verbs_`
  const std::shared_ptr<ExposedMemory> exposed_ = std::make_shared<ExposedMemory>();
};

}  // namespace mscclc::cuda
