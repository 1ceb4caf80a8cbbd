// The far end of a lane over sockets: carries out the orders of one peer of another machine.
#pragma once

#include <memory>

#include "runtime/api/lane.h"
#include "runtime/network/exposed_memory.h"
#include "runtime/network/landing.h"
#include "runtime/network/sockets/socket_net.h"

namespace mscclc::net {

/// For the orders of rank `peer`, to `memory` of this rank. nullptr: reported (lane-failed). Orders
/// that it cannot take, and a connection that breaks, end the lane: `failed` says why, also at the
/// peer. `landing`: for what of the memory is a device's. `noted`: LanePeer.
[[nodiscard]] std::unique_ptr<LaneEnd> await_socket_lane(
    uint32_t peer, std::shared_ptr<SocketNet> net, std::shared_ptr<ExposedMemory> memory,
    LaneFailed failed, std::unique_ptr<Landing> landing = nullptr, LaneNoted noted = {});

}  // namespace mscclc::net
