// The proxy of a rank's port channels: what running blocks ask for in its queue (executor/launch.h)
// is done by the thread of the device (proxy_thread.h), in order, each peer's over a lane of its
// own. Blocks name a peer's memory by addresses; lanes take regions and offsets, so it need not be
// mapped here. Nothing here waits for a copy, nor for a peer: lanes themselves report flushes to
// blocks, and signals to peers; a lane without room is asked again at the next turn.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "executor/launch.h"
#include "runtime/api/device.h"
#include "runtime/core/device/remote_regions.h"
#include "runtime/core/proxy/proxy_thread.h"

namespace mscclc {

/// Thread safety: start(), settle() and the end of one are for one thread at a time; the thread of
/// the device does the rest.
class Proxy final : public ProxyThread::Served {
 public:
  /// A channel of this rank, and where its signals go.
  struct Port {
    bool used = false;  ///< false: not a port channel
    uint32_t peer = 0;
    const uint64_t* arrived = nullptr;  ///< the partner's count, as blocks name it; nullptr: none
                                        ///< waits there
    uint64_t sent = 0;       ///< signals; at the start the credits of the partner, which it gets
    RemotePlace count = {};  ///< the same for the lane: start() looks it up
    uint64_t put_turn = 0;   ///< that of the last put; 0: a signal has come since
    bool signals = false;    ///< does the signal after a put come at once? It has the last time
  };
  /// All that blocks may ask for.
  struct Ports {
    std::vector<Port> channels;  ///< by channel
    /// By peer, to all that a used port leads to; none once settle() has found a failure.
    std::vector<std::unique_ptr<Lane>> lanes;
    std::shared_ptr<const RemoteRegions> regions;  ///< what requests may name
  };
  /// PortQueue's, by blocks and by channel.
  struct Counts {
    uint64_t *claimed, *seen, *flushed;
  };
  /// Requests that the queue holds: blocks wait when it is full.
  static constexpr uint64_t kBits = 8, kCapacity = uint64_t{1} << kBits;
  /// Requests that it serves in a turn, so that others come to theirs.
  static constexpr uint32_t kTurn = 32;
  static constexpr std::chrono::microseconds kSoon{3};  ///< start()
  /// Looks for requests from one look at the clock to the next.
  static constexpr uint32_t kLooks = 64;

  /// `counts`: what of the queue lies in the rank's memory, as zeros, which must
  /// outlive the proxy. `fail(why)` is called if a copy fails; the proxy does nothing more then.
  /// Other failures do not concern it: what blocks have asked for before they gave up is done, as
  /// peers may count on it. `awake`: how long nothing is asked of it before it looks whether the
  /// copies that it has begun are done, so that one that fails is found. `soon`: how long a short
  /// put waits for its signal, so that both go together. nullptr: reported.
  static std::unique_ptr<Proxy> start(std::shared_ptr<Device> device, Ports ports,
                                      const Counts& counts,
                                      std::function<void(const std::string&)> fail,
                                      Diagnostics& diagnostics,
                                      std::chrono::microseconds awake = ProxyThread::kAwake,
                                      std::chrono::microseconds soon = kSoon);
  /// Settles, then ends. REQUIRES: no block runs any more.
  ~Proxy() override;

  /// Waits until all requests are done, copies included, or the proxy has given up, which ends its
  /// lanes: after that it touches no memory any more. Blocks that still run may ask for more: that
  /// is waited for, too, or is never done.
  void settle();
  const device::PortQueue& queue() const { return queue_; }
  /// Before what blocks ask for from now on goes over any lane, the far ends take this. From the
  /// thread that launches.
  void note(const LaneNote& note);

 private:
  /// What became of a request.
  enum class Step : uint8_t {
    done,
    part,     ///< of a put
    no_room,  ///< of the lane
    failed
  };

  static constexpr uint64_t kNever = ~uint64_t{0};

  Proxy(std::chrono::microseconds awake, std::chrono::microseconds soon)
      : awake_(awake), soon_(soon) {}
  ProxyThread::Progress serve() override;
  ProxyThread::Progress serve_turn();
  [[nodiscard]] bool bind();
  [[nodiscard]] bool give_credits();
  Step serve_some(bool& moved);
  [[nodiscard]] Step pass_on_notes();
  bool signal_comes(device::PortRequest& request);
  void cork(Lane& lane);
  [[nodiscard]] bool uncork();
  [[nodiscard]] Step handle(const device::PortRequest& request);
  [[nodiscard]] Step put(const device::PortRequest& request, Port& port);
  [[nodiscard]] Step give(const device::PortRequest& request, Port& port);
  [[nodiscard]] Step signal(Port& port);
  [[nodiscard]] std::optional<RemotePlace> find(uint32_t peer, const void* address, uint64_t bytes,
                                                Diagnostics& problems) const;
  bool is_quiet();
  ProxyThread::Progress flush_some();
  ProxyThread::Progress give_up();

  const std::chrono::microseconds awake_, soon_;
  std::shared_ptr<Device> device_;
  Ports ports_;
  std::function<void(const std::string&)> fail_;
  std::unique_ptr<Memory> memory_;  ///< slots, then the count of handled requests
  device::PortQueue queue_{};
  uint64_t* handled_ = nullptr;
  std::atomic<bool> stop_{false};
  std::atomic<bool> ended_{false};
  std::atomic<uint32_t> waiting_{0};  ///< threads in settle()
  std::atomic<uint64_t> settled_{0};  ///< requests that are done, copies included; or kNever
  std::mutex notes_mutex_;
  std::deque<LaneNote> notes_;  ///< under the mutex
  std::atomic<bool> has_notes_{false};

  // The thread's own.
  Diagnostics problems_;
  bool bound_ = false;
  uint64_t number_ = 0;  ///< of the request that is next
  uint64_t given_ = 0;   ///< bytes of its put that the lane has taken; all: its signal is next
  uint64_t turn_ = 1;
  Port* expects_ = nullptr;    ///< a signal after the put that was served last
  std::vector<Lane*> corked_;  ///< in this turn
  size_t noted_lanes_ = 0;     ///< that have the first note
  size_t flushed_lanes_ = 0;   ///< since the last request: so many of them are done
  bool flushing_ = false;
  uint32_t looks_ = 0;
  std::optional<std::chrono::steady_clock::time_point> quiet_since_;

  std::shared_ptr<ProxyThread> thread_;  ///< goes first
};

}  // namespace mscclc
