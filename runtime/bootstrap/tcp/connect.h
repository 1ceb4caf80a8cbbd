// How a rank gets from an address to a connection on which both ends have proved that they know the
// job's secret.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "ir/diagnostic.h"
#include "runtime/bootstrap/tcp/connection.h"
#include "runtime/bootstrap/tcp/meeting.h"

namespace mscclc {

/// Where a job's hub is.
struct Rendezvous {
  std::string host = {};             ///< address or name; "": only at unix sockets
  std::vector<uint16_t> ports = {};  ///< it listens on one of these
  Secret secret{};
  bool local = false;                 ///< it may listen at a unix socket of this machine
  bool served = false;                ///< it listens already: where nobody does, it is gone
  std::vector<Address> exactly = {};  ///< at one of these, as well
  static Rendezvous of(const UniqueId& id);
};

struct Connected {
  Connection connection;  ///< sealed; it has said that the rank is here
  wire::Welcome welcome;
  Address address;
};

/// Tries all places side by side until `deadline`: ranks may start before the hub does. What
/// happens before a hub has proved itself is never final. Errors: bootstrap-timeout (with what was
/// met at each place), bootstrap-gone (`where.served`, and nobody listens), no-descriptors.
[[nodiscard]] std::optional<Connected> connect_to_hub(const Rendezvous& where, uint32_t rank,
                                                      uint32_t size,
                                                      std::chrono::milliseconds timeout,
                                                      Diagnostics& diagnostics);

}  // namespace mscclc
