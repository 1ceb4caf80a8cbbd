// Where a hub listens.
#pragma once

#include <string>
#include <vector>

#include "ir/diagnostics/diagnostic.h"
#include "runtime/bootstrap/tcp/hub.h"
#include "runtime/support/address/sockets.h"
#include "runtime/support/fd.h"

namespace mscclc {

struct Listener {
  Fd socket;                ///< does not block
  Address address;          ///< where this process reaches it
  bool everywhere = false;  ///< at that port of all addresses of this machine
};

/// "port 30500 of all addresses", "a unix socket of this machine".
std::string place(const Listener& listener);

/// Listens at the first place of `options` that is free, and (HubOptions::local) at the first unix
/// socket of the job's. Warns (port-taken) where that is not the first place. Empty: reported
/// (cannot-listen; two-jobs: a process of this user listens at another of these sockets).
[[nodiscard]] std::vector<Listener> open_listeners(const HubOptions& options,
                                                   Diagnostics& diagnostics);

}  // namespace mscclc
