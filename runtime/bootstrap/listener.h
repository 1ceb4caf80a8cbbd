// Where a hub listens.
#pragma once

#include "ir/diagnostic.h"
#include "runtime/bootstrap/hub.h"
#include "runtime/fd.h"

namespace mscclc {

struct Listener {
  Fd socket;        ///< does not block
  Address address;  ///< where this process reaches it
};

/// Listens at the first place of `options` that is free. Invalid socket: reported (cannot-listen).
Listener open_listener(const HubOptions& options, Diagnostics& diagnostics);

/// At one address. Invalid: errno says why.
Fd listen_on(const Address& address);
/// On all addresses of this machine, IPv4 and IPv6.
Fd listen_everywhere(uint16_t port);

}  // namespace mscclc
