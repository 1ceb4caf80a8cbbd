// The way to the memory of one peer: what a port channel's proxy sends over.
//
// A lane leads from this rank to one other. Memory there is named by region and offset: the region
// is what the lane's device has made of the peer's handle (Device::import_memory(), or
// reach_memory()). Whether it is mapped here is the lane's business: a copy engine wants it mapped,
// a network does not. Lanes are of the kinds that their devices offer: copy engines (runtime/cuda),
// for the host copies or messages (runtime/host), and between machines sockets (runtime/net).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
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

/// Keeps its orders in order. Every order is for one thread at a time, the proxy's. False:
/// reported, and the lane takes no more; what it was asked for before may not have been done.
class Lane {
 public:
  /// Waits for what still reads or writes memory of this rank.
  virtual ~Lane() = default;
  /// Begins to copy. The source, memory of this rank, may not change before complete() has said so,
  /// or flush() has returned.
  [[nodiscard]] virtual bool put(const RemotePlace& to, const void* from, uint64_t bytes,
                                 Diagnostics& diagnostics) = 0;
  /// When all puts so far have been done: sets a count of the peer to `value`. Whoever sees it
  /// there sees what was put. Does not wait for that.
  [[nodiscard]] virtual bool signal(const RemotePlace& count, uint64_t value,
                                    Diagnostics& diagnostics) = 0;
  /// When the sources of all puts so far have been read: sets `*count`, of this rank, to `value`.
  /// Does not wait for that.
  [[nodiscard]] virtual bool complete(uint64_t* count, uint64_t value,
                                      Diagnostics& diagnostics) = 0;
  /// Waits until all that was begun has been done.
  [[nodiscard]] virtual bool flush(Diagnostics& diagnostics) = 0;
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
