// What ranks share while a plan runs on the simulator: channel ends, semaphores, barriers, base
// addresses. Plain memory: fibers take turns.
#pragma once

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "executor/cpu/dice.h"
#include "executor/interpreter/layout.h"
#include "executor/rows/externals.h"

namespace mscclc {

/// What a block hands to the proxy of a port channel.
struct PortRequest {
  uint8_t* to = nullptr;  ///< nullptr: a signal
  const uint8_t* from = nullptr;
  uint64_t bytes = 0;
  uint32_t op = 0;  ///< index among the rank's ops, for reports
};

/// One end of a channel.
struct SimChannelEnd {
  uint64_t arrived = 0;  ///< signals from the partner
  uint64_t taken = 0;    ///< of them, by waits
  // Port: the queue of this end's proxy.
  static constexpr uint64_t kQueue = 8;
  PortRequest queue[kQueue];
  uint64_t posted = 0, done = 0;
  /// The number of a request that a transport may do next: the oldest, or a put that only puts to
  /// other places come before, as those may go by other connections.
  uint64_t any_next(Dice& dice) const;
};

/// Of a ring of kQueue entries: entry `next` comes to be entry `done`, and those before it follow.
template <class T>
void bring_forward(T* ring, uint64_t done, uint64_t next) {
  for (; next > done; --next) {
    std::swap(ring[next % SimChannelEnd::kQueue], ring[(next - 1) % SimChannelEnd::kQueue]);
  }
}

struct BarrierState {
  uint32_t arrived = 0;
  uint64_t generation = 0;
};

/// A flag of an external array.
struct SimFlag {
  uint64_t raised = 0;  ///< over all calls of the run
  uint64_t each = 1;    ///< so often in a call
};

struct BaseAddress {
  uint8_t* address = nullptr;
  uint64_t copy_stride = 0;
  uint32_t copies = 1;
};

/// A rank of a plan. Calls are counted here as calls of this plan, in this run.
struct SimRank {
  std::vector<BaseAddress> bases;
  std::vector<SimChannelEnd> ends;
  /// By channel: its end, here or at the plan of a set that had the wire first.
  std::vector<SimChannelEnd*> channels;
  std::vector<uint64_t> semaphores;
  std::vector<BarrierState> barriers;
  std::vector<SimFlag> flags;       ///< of all arrays, by number
  std::vector<uint8_t*> externals;  ///< by external: its memory
  std::vector<rows::ExternalLayout> external_layouts;
  uint32_t active_blocks = 0;  ///< blocks that have ops
  uint64_t call = 0;           ///< which call of the rank, of whatever plan, is the last begun
  uint64_t started = 0;        ///< calls that the caller has begun
  uint64_t entered = 0;        ///< calls in which a block has run
  uint64_t blocks_done = 0;    ///< blocks that have ended a call, all calls together
};

}  // namespace mscclc
