// How a rank gets from an address to a connection on which both ends have proved that they know the
// job's secret.
#pragma once

#include <chrono>
#include <optional>

#include "ir/diagnostics/diagnostic.h"
#include "runtime/bootstrap/tcp/connection.h"
#include "runtime/bootstrap/tcp/meeting.h"
#include "runtime/support/address/rendezvous.h"

namespace mscclc {

struct Connected {
  Connection connection;  ///< sealed; it has said that the rank is here
  wire::Welcome welcome;
  Address address;
};

/// Tries all places side by side until `deadline`: ranks may start before the hub does. What
/// happens before a hub has proved itself is never final. Errors: bootstrap-timeout (with what was
/// met at each place), bootstrap-gone (`where.served`, and nothing listens), no-descriptors, what
/// `where.gives_up` reports.
[[nodiscard]] std::optional<Connected> connect_to_hub(const Rendezvous& where, uint32_t rank,
                                                      uint32_t size,
                                                      std::chrono::milliseconds timeout,
                                                      Diagnostics& diagnostics);

}  // namespace mscclc
