// How the host writes requests to the queue of a proxy, and reads them (launch.h: PortQueue).
#pragma once

#include <cstdint>

#include "executor/launch.h"
#include "executor/shared_atomics.h"

namespace mscclc::device {

/// Writes request `number`, and publishes what this thread has seen. REQUIRES: there is room.
inline void write_request(const PortQueue& queue, uint64_t number, const PortRequest& request) {
  const PortSlot made = slot_of(request, queue.turn(number));
  PortSlot& slot = queue.slot(number);
  for (uint32_t i = 0; i < PortSlot::kWords; ++i) store_release(&slot.words[i], made.words[i]);
}

/// Reads request `number`, and sees what its block has published. False: it has not come.
inline bool read_request(const PortQueue& queue, uint64_t number, PortRequest& request) {
  constexpr uint64_t kRest = (uint64_t{1} << PortSlot::kTurn) - 1;
  const PortSlot& slot = queue.slot(number);
  const uint64_t turn = queue.turn(number);
  uint64_t words[PortSlot::kWords];
  for (uint32_t i = 0; i < PortSlot::kWords; ++i) {
    const uint64_t word = load_acquire<uint64_t>(&slot.words[i]);
    if ((word & ~kRest) != turn) return false;
    words[i] = word & kRest;
  }
  request = {static_cast<PortWhat>(words[3] >> 32), static_cast<uint32_t>(words[3]), words[0],
             words[1], words[2]};
  return true;
}

}  // namespace mscclc::device
