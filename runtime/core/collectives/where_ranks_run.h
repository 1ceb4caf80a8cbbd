// What choices of plans may know of the machines and GPUs that the ranks run on: facts that all
// ranks have exchanged, the same on all of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ir/contract/order.h"
#include "ir/diagnostics/diagnostic.h"

namespace mscclc {

class Communicator;

struct WhereRanksRun {
  uint32_t nodes = 1;            ///< LibraryCall::nodes
  uint32_t architecture = 0;     ///< PlanRequest::architecture
  uint32_t multiprocessors = 0;  ///< PlanRequest::multiprocessors
  bool multicast = false;        ///< PlanRequest::multicast
};

/// How ranks that are spread unevenly lie, for messages: "0 to 6, 7 to 14". `first_of_node`:
/// Communicator::nodes().
std::string nodes_text(const std::vector<uint32_t>& first_of_node);

/// Collective: asks all ranks, and compares `order`, which must be the same on all: of calls that
/// do not say it. nullopt: reported.
[[nodiscard]] std::optional<WhereRanksRun> find_where_ranks_run(Communicator& communicator,
                                                                SumOrder order,
                                                                Diagnostics& diagnostics);

}  // namespace mscclc
