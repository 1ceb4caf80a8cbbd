// How a rank gets from an address to a connection on which both ends have proved that they know the
// job's secret.
#pragma once

#include <chrono>
#include <optional>

#include "ir/diagnostic.h"
#include "runtime/bootstrap/connection.h"
#include "runtime/bootstrap/meeting.h"

namespace mscclc {

/// Where a job's hub is.
struct Rendezvous {
  std::string host;             ///< address or name
  std::vector<uint16_t> ports;  ///< it listens on one of these
  Secret secret{};
  static Rendezvous of(const UniqueId& id);
};

struct Connected {
  Connection connection;
  wire::Welcome welcome;
  Address address;
};

/// Tries until `deadline`: ranks may start before the hub does. Errors: bootstrap-timeout (nobody
/// answers; with the last reason), bootstrap-refused (why), unknown-host.
std::optional<Connected> connect_to_hub(const Rendezvous& where, uint32_t rank, uint32_t size,
                                        std::chrono::milliseconds timeout,
                                        Diagnostics& diagnostics);

}  // namespace mscclc
