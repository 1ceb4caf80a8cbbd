// Opens the connections of a lane to a rank of another machine.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

#include "ir/support/result.h"
#include "runtime/network/lane_wire.h"
#include "runtime/support/fd.h"

namespace mscclc::net {

struct DialOptions {
  uint32_t connections = 1;
  std::chrono::milliseconds timeout{30'000};  ///< of all of them
  std::chrono::seconds dead{30};              ///< SocketOptions::dead
  std::function<bool()> over = {};            ///< asked now and then; true ends it
};

/// Connections whose other end has proved that it knows the offer's key.
Result<std::vector<Fd>> dial(const LaneOffer& offer, const DialOptions& options);

}  // namespace mscclc::net
