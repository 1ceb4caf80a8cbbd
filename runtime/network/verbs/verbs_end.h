// The far end of a lane over verbs: queue pairs over which a peer writes memory of this rank, and
// the thread that carries out signals which come as messages.
#pragma once

#include <memory>

#include "runtime/api/lane.h"
#include "runtime/network/verbs/adapter.h"
#include "runtime/network/verbs/arrivals.h"

namespace mscclc::verbs {

/// For the orders of rank `peer`. `memory`: of messages; RDMA writes reach what was exposed
/// (Adapter::expose()). A connection that breaks, and a message that cannot be carried out, end the
/// lane: `failed` says why, also at the peer. `arrivals`: memory may lie on a GPU; then signals
/// always come as messages. `noted`: LanePeer.
[[nodiscard]] std::unique_ptr<LaneEnd> await_verbs_lane(
    uint32_t peer, std::shared_ptr<Adapter> adapter, std::shared_ptr<ExposedMemory> memory,
    LaneFailed failed, std::unique_ptr<Arrivals> arrivals = {}, LaneNoted noted = {});

}  // namespace mscclc::verbs
