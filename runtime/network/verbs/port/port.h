// The port of an InfiniBand or RoCE device that the lanes of this rank use.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "ir/support/result.h"
#include "runtime/network/verbs/port/options.h"
#include "runtime/network/verbs/resources/resources.h"

namespace mscclc::verbs {

struct Port {
  std::shared_ptr<Context> context;
  uint8_t number = 0;
  ibv_port_attr attributes = {};
  ibv_gid_entry gid = {};    ///< its address; RoCE has no other
  bool atomics = false;      ///< the device can add to memory
  uint32_t most_orders = 0;  ///< that a queue holds
  uint8_t most_atomics = 0;  ///< that a queue pair answers at a time, reads included
  uint8_t most_begun = 0;    ///< ... that it begins
  /// RoCE: Ethernet is below it.
  bool is_roce() const { return attributes.link_layer == IBV_LINK_LAYER_ETHERNET; }
  /// "port 1 of mlx5_0"
  std::string text() const;
  /// Why nothing can be sent there now. Asks the device.
  std::optional<Error> problem() const;
};

/// Is a GID, 16 bytes, an address of IPv4? Others of RoCE v2 are of IPv6.
bool is_ipv4(const uint8_t* gid);

/// The one that the options ask for: what they name must be usable, as must the one that is found.
/// The error says of each port that there is why it is of no use.
Result<Port> choose_port(const Library& library, const VerbsOptions& options);

}  // namespace mscclc::verbs
