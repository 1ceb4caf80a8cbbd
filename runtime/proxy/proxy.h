// The proxy of a rank's port channels: a thread that does what running blocks ask for in the queue
// (executor/launch.h), in order, each peer's over a lane of its own. Blocks name a peer's memory by
// addresses; lanes take regions and offsets, so it need not be mapped here. It waits for no copy
// while blocks may ask for more: lanes themselves report flushes to blocks, and signals to peers.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "executor/launch.h"
#include "runtime/api/device.h"
#include "runtime/device/remote_regions.h"

namespace mscclc {

/// Thread safety: start(), settle() and the end of one are for one thread at a time; its own thread
/// does the rest.
class Proxy {
 public:
  /// A channel of this rank, and where its signals go.
  struct Port {
    bool used = false;  ///< false: not a port channel
    uint32_t peer = 0;
    const uint64_t* arrived = nullptr;  ///< the partner's count, as blocks name it; nullptr: none
                                        ///< waits there
    RemotePlace count = {};             ///< the same for the lane: start() looks it up
    uint64_t sent = 0;
  };
  /// All that blocks may ask for.
  struct Ports {
    std::vector<Port> channels;                    ///< by channel
    std::vector<std::unique_ptr<Lane>> lanes;      ///< by peer, to all that a used port leads to
    std::shared_ptr<const RemoteRegions> regions;  ///< what requests may name
  };
  /// Requests that the queue holds: blocks wait when it is full.
  static constexpr uint64_t kCapacity = 256;
  /// The copies of a call take milliseconds; the proxy should still be awake when the next call
  /// posts its own.
  static constexpr std::chrono::milliseconds kAwake{10};

  /// `claimed`, `flushed`: zeros in the rank's memory (PortQueue), which must
  /// outlive the proxy. `fail(why)` is called if a copy fails; the proxy does nothing more then.
  /// Other failures do not concern it: what blocks have asked for before they gave up is done, as
  /// peers may count on it. `awake`: how long nothing is asked of it before it sleeps, and
  /// before that waits for the copies that it has begun, so that one that fails is found. nullptr:
  /// reported.
  static std::unique_ptr<Proxy> start(std::shared_ptr<Device> device, Ports ports,
                                      uint64_t* claimed, uint64_t* flushed,
                                      std::function<void(const std::string&)> fail,
                                      Diagnostics& diagnostics,
                                      std::chrono::microseconds awake = kAwake);
  /// Settles, then ends. REQUIRES: no block runs any more.
  ~Proxy();

  /// Waits until all requests are done, copies included, or the proxy has given up: after that it
  /// touches no memory any more. REQUIRES: no block runs.
  void settle();
  const device::PortQueue& queue() const { return queue_; }

 private:
  explicit Proxy(std::chrono::microseconds awake) : awake_(awake) {}
  void serve();
  [[nodiscard]] bool serve_all(Diagnostics& problems);
  [[nodiscard]] bool serve_next(uint64_t number, Diagnostics& problems);
  [[nodiscard]] bool flush_all(Diagnostics& problems);
  bool asked(uint64_t number) const;
  [[nodiscard]] bool handle(const device::PortRequest& request, uint64_t number,
                            Diagnostics& problems);
  [[nodiscard]] bool put(const device::PortRequest& request, const Port& port,
                         Diagnostics& problems);
  [[nodiscard]] std::optional<RemotePlace> find(uint32_t peer, const void* address, uint64_t bytes,
                                                Diagnostics& problems) const;

  const std::chrono::microseconds awake_;
  std::shared_ptr<Device> device_;
  Ports ports_;
  std::function<void(const std::string&)> fail_;
  std::unique_ptr<Memory> memory_;  ///< slots, then the count of handled requests
  device::PortQueue queue_{};
  uint64_t* handled_ = nullptr;
  std::atomic<bool> stop_{false};
  std::atomic<bool> ended_{false};
  std::atomic<uint32_t> waiting_{0};  ///< threads in settle()
  std::atomic<uint64_t> settled_{0};  ///< requests that are done, copies included
  std::thread thread_;
};

}  // namespace mscclc
