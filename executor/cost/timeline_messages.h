// What is on its way in a simulation in virtual time, and what blocks and transfers wait for.
#pragma once

#include <vector>

#include "executor/cost/timeline.h"
#include "executor/cost/virtual_time/events.h"
#include "executor/cost/virtual_time/slots.h"
#include "executor/cost/work.h"

namespace mscclc::cost {

/// Something on its way: packets, a signal, a request to a proxy.
struct Message {
  uint32_t record = kNoRecord;
  double sent = 0;
  uint32_t hops = 0;
  uint32_t rank = 0;     ///< packets and signals: where they come to; requests: whose proxy
  uint32_t channel = 0;  ///< signals: the end there; requests: this rank's
  bool signal = false, request = false;
  std::vector<PacketRange> slots;
  uint64_t bytes = 0;
  bool in_gpus = false;  ///< Request::in_gpus
  uint32_t peer = 0;
};

/// One of the things that a block's step, or a transfer, waits for.
struct Part {
  uint32_t owner;  ///< a block or a transfer
  bool is_block;
  bool on_link;     ///< of a transfer: at something shared
  double lead = 0;  ///< a block that stores over a link: until the first bytes leave
};

struct InFlight {
  Slots<Message> messages;
  Slots<Part> parts;
};

/// From one rank to another, in nanoseconds.
inline double latency(const Machine& machine, uint32_t from, uint32_t to) {
  if (from == to) return 0;
  return ns(machine.same_node(from, to) ? machine.link_latency_ns() : machine.nic_latency_ns);
}

}  // namespace mscclc::cost
