// For tests: ends of a lane over sockets, spoken byte by byte, so that they can stop anywhere, or
// say what no end says.
#pragma once

#include <chrono>
#include <span>
#include <vector>

#include "runtime/network/lane_wire.h"
#include "runtime/support/fd.h"

namespace mscclc::net::testing {

/// A connection to what listens there. It does not block.
Fd knock(const Address& address);

/// What comes next; fewer bytes: the connection has ended, or nothing came for two minutes.
Bytes hear(const Fd& socket, size_t count);

/// Sends all of it, as the other end takes it. False: it has ended, or takes nothing for long.
bool say(const Fd& socket, std::span<const uint8_t> bytes);
/// The same, one byte a message.
void say_bytewise(const Fd& socket, std::span<const uint8_t> bytes);

/// Reads until the other end has closed. False: it has not.
bool await_end(const Fd& socket, std::chrono::milliseconds patience);
/// Goes on sending. False: the other end still takes it.
bool send_until_cut_off(const Fd& socket, std::chrono::milliseconds patience);

/// An order as it goes over the wire.
Bytes as_bytes(const Order& order);

/// The far end of a lane.
class RawFarEnd {
 public:
  RawFarEnd();
  const Bytes& offer() const { return offer_; }
  /// Takes so many connections, and proves itself to each.
  void take(uint32_t connections);

  std::vector<Fd> sockets;  ///< in the order of their numbers

 private:
  Fd listener_;
  LaneOffer said_;
  Bytes offer_;
};

}  // namespace mscclc::net::testing
