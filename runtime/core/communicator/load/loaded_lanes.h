// The lanes of a loaded plan to other ranks, and the proxy that sends on them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "executor/launch.h"
#include "runtime/api/device.h"
#include "runtime/core/communicator/load/loaded_plan.h"
#include "runtime/core/proxy/proxy.h"
#include "runtime/support/bytes.h"

namespace mscclc {

class LoadedLanes {
 public:
  /// `loaded` must outlive it.
  explicit LoadedLanes(const LoadedPlan& loaded);
  LoadedLanes(const LoadedLanes&) = delete;
  LoadedLanes& operator=(const LoadedLanes&) = delete;
  /// Ends the proxy first.
  ~LoadedLanes() { proxy_.reset(); }

  /// Gives each of the ranks that send to this one what their lanes need to know: appended to a
  /// message to all.
  [[nodiscard]] bool await(std::vector<uint8_t>& message, Diagnostics& diagnostics);
  /// Takes what `peer` has given this rank from the front of its message.
  [[nodiscard]] bool take_offer(uint32_t peer, ByteReader& message, Diagnostics& diagnostics);
  /// Opens lanes and starts the proxy, if channels need one. `ends`: by channel. `queue`: where it
  /// finds transfers; completed here.
  [[nodiscard]] bool start(const std::vector<device::ChannelEnd>& ends, device::PortQueue& queue,
                           Diagnostics& diagnostics);

  /// nullptr: no channel needs one.
  Proxy* proxy() const { return proxy_.get(); }
  /// ComparedCalls::far, or one of its own where calls of the plan are in no order with those of
  /// others; nullptr: no lane leads anywhere.
  FarCalls* far_calls() const { return far_calls_.get(); }

 private:
  /// Does the proxy of `from` send to this rank?
  bool proxy_sends_from(uint32_t from) const;
  /// A peer to or from which a lane leads; with its offer, if it has come.
  LanePeer lane_peer(uint32_t peer) const;
  /// Ends the communicator; from any thread, and when it has gone, too.
  LaneFailed fail_group() const;
  [[nodiscard]] bool open(Proxy::Ports& ports, Diagnostics& diagnostics);

  const LoadedPlan& x_;
  const std::shared_ptr<FarCalls> far_calls_;
  std::vector<std::vector<uint8_t>> offers_;    ///< by peer: of its LaneEnd for this rank
  std::unique_ptr<Memory> flushed_;             ///< PortQueue::flushed
  std::vector<std::unique_ptr<LaneEnd>> ends_;  ///< of those whose proxies write here
  std::unique_ptr<Proxy> proxy_;
};

}  // namespace mscclc
