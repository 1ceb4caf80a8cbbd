// A lane over sockets, to a rank of another machine: several connections, among which the blocks of
// the peer's memory are spread. What is put to one place goes over one connection, and so stays in
// order; signals and flushes wait, at the far end, for what the other connections brought before.
// The thread that gives orders sends them as far as the sockets have room; the reactor's thread
// goes on when they have room again. What is ordered while the lane is corked goes in one message.
// Long puts are sent by workers (copy_workers.h), where there are some.
#pragma once

#include <chrono>
#include <memory>

#include "runtime/api/lane.h"
#include "runtime/network/sockets/socket_net.h"

namespace mscclc::net {

/// Opens the lane to a far end (await_socket_lane()). nullptr: reported (lane-failed). Orders that
/// fail (lane-failed) name the peer; so does LanePeer::failed, where no order waits. A peer whose
/// far end has gone in good order needs none any more: then they count as done.
[[nodiscard]] std::unique_ptr<Lane> open_socket_lane(const LanePeer& peer,
                                                     std::shared_ptr<SocketNet> net,
                                                     std::chrono::milliseconds timeout,
                                                     Diagnostics& diagnostics);

}  // namespace mscclc::net
