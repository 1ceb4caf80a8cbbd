// Which ranks share a node: a machine as far as the network namespace goes, in which processes pass
// each other descriptors of memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ir/diagnostics/diagnostic.h"

namespace mscclc {

/// The same text for all ranks of a node. `simulated`: the node's number, where a machine is cut
/// into several. nullopt: reported (no-node).
[[nodiscard]] std::optional<std::string> node_name(std::optional<uint32_t> simulated,
                                                   Diagnostics& diagnostics);

}  // namespace mscclc
