// A lane over a socket: the peer's memory is not mapped here. Its rank has a thread that takes the
// orders from the other end of the socket and carries them out, as a network adapter would.
#pragma once

#include <memory>

#include "runtime/api/lane.h"
#include "runtime/devices/host/host_memory.h"
#include "runtime/network/exposed_memory.h"
#include "runtime/support/memory/fd_server.h"

namespace mscclc {

/// The far end for the orders of rank `peer`, to `memory` of this rank. nullptr: reported
/// (lane-failed, no-thread, and those of FdServer).
[[nodiscard]] std::unique_ptr<LaneEnd> await_messages(uint32_t peer,
                                                      std::shared_ptr<FdServer> server,
                                                      std::shared_ptr<ExposedMemory> memory,
                                                      LaneFailed failed, Diagnostics& diagnostics);

/// Opens the lane to a far end. nullptr: reported (lane-failed). Orders that fail (lane-failed) say
/// which peer does not take them. A peer whose far end has gone in good order needs none any more:
/// then they count as done.
[[nodiscard]] std::unique_ptr<Lane> open_messages(const LanePeer& peer, const FetchWait& wait,
                                                  Diagnostics& diagnostics);

}  // namespace mscclc
