// The way to the memory of one peer: what a port channel's proxy sends over.
//
// A lane leads from this rank to one other. Memory there is named by region and offset: the region
// is what the lane's device has made of the peer's handle (Device::import_memory(), or
// reach_memory()). Whether it is mapped here is the lane's business: a copy engine wants it mapped,
// a network does not. Lanes are of the kinds that their devices offer: copy engines
// (runtime/devices/cuda), for the host copies or messages (runtime/devices/host), and between
// machines sockets (runtime/network).
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ir/diagnostics/diagnostic.h"
#include "runtime/api/link.h"

namespace mscclc {

class Memory;

/// A byte of a peer's memory, which need not be mapped here.
struct RemotePlace {
  const Memory* region = nullptr;
  uint64_t offset = 0;
};

/// What a rank is about to do, in words that mean something to the ranks only.
using LaneNote = std::array<uint64_t, 8>;
/// Called, from any thread, with what the sender of a lane has noted: "", or why the lane ends.
using LaneNoted = std::function<std::string(const LaneNote&)>;

enum class FlushState : uint8_t { done, under_way, failed };

/// Keeps its orders in order. Every order is for one thread at a time, the proxy's, which serves
/// other lanes, too: it asks for room() first. False: reported, and the lane takes no more; what it
/// was asked for before may not have been done.
class Lane {
 public:
  static constexpr uint64_t kAnyRoom = UINT64_MAX;

  /// Waits for what still reads or writes memory of this rank.
  virtual ~Lane() = default;
  /// Bytes that a put may have now without a wait for the peer, and without keeping the thread
  /// long. 0: any order would wait for now; the lane has room again when the peer gets on. A lane
  /// that has failed, or whose wait would be over (LanePeer::over), has room: the order says why.
  virtual uint64_t room() { return kAnyRoom; }
  /// Begins to copy. The source, memory of this rank, may not change before complete() has said so,
  /// or flush() has returned.
  [[nodiscard]] virtual bool put(const RemotePlace& to, const void* from, uint64_t bytes,
                                 Diagnostics& diagnostics) = 0;
  /// When all puts so far have been done: sets a count of the peer to `value`. What sees it there
  /// sees what was put. Does not wait for that.
  [[nodiscard]] virtual bool signal(const RemotePlace& count, uint64_t value,
                                    Diagnostics& diagnostics) = 0;
  /// When the sources of all puts so far have been read: sets `*count`, of this rank, to `value`.
  /// Does not wait for that.
  [[nodiscard]] virtual bool complete(uint64_t* count, uint64_t value,
                                      Diagnostics& diagnostics) = 0;
  /// The peer's end takes a note before it carries out anything that is ordered from now on: until
  /// it has, the lane may have no room. Lanes to mapped memory have no such end.
  [[nodiscard]] virtual bool note(const LaneNote&, Diagnostics&) { return true; }
  /// Has all that was begun been done? Does not wait: begins to find out, and is asked again.
  [[nodiscard]] virtual FlushState try_flush(Diagnostics& diagnostics) = 0;
  /// From now on short orders may wait, so that they go together with what is ordered next, until
  /// uncork(). Only puts, signals and complete() come between the two.
  virtual void cork() {}
  /// Begins what has waited.
  [[nodiscard]] virtual bool uncork(Diagnostics& diagnostics) { return true; }
  /// Waits until all that was begun has been done.
  [[nodiscard]] bool flush(Diagnostics& diagnostics) {
    for (;;) {
      const FlushState state = try_flush(diagnostics);
      if (state != FlushState::under_way) return state == FlushState::done;
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }
};

/// Called, from any thread, when a lane or its far end can take no more orders.
using LaneFailed = std::function<void(const std::string& why)>;

/// Where a lane leads.
struct LanePeer {
  uint32_t rank = 0;
  /// What the peer's LaneEnd for this rank offers.
  std::span<const uint8_t> offer = {};
  /// Asked now and then while an order waits for the peer: true ends the wait, as a failure. Empty:
  /// nothing is asked.
  std::function<bool()> over = {};
  /// What joins this rank's device to that one's.
  Link link = {};
  /// Called if the lane fails while no order waits. Empty: nothing is called.
  LaneFailed failed = {};
  /// For await_lane(): called with notes. Empty: nothing is called.
  LaneNoted noted = {};
};

/// The far end of a lane: what a rank keeps ready for the orders of one peer, from before that
/// opens the lane until no call needs it any more. Lanes that write to mapped memory need nothing
/// there.
class LaneEnd {
 public:
  virtual ~LaneEnd() = default;
  /// What the peer needs to open the lane.
  const std::vector<uint8_t>& offer() const { return offer_; }

 protected:
  std::vector<uint8_t> offer_;
};

}  // namespace mscclc
