// What a machine costs: its links, and what its GPUs take for the parts of a call. A small JSON
// file (plans/machines/*.json are built in; docs/design/cost_model.md), from which executor/cost
// predicts times.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/diagnostics/diagnostic.h"
#include "ir/support/link_kind.h"

namespace mscclc {

struct Machine {
  std::string name;
  std::string description;
  bool measured = false;              ///< its figures come from runs on it, not from publications
  std::vector<std::string> sources;   ///< where they come from
  uint32_t nodes = 1, gpus = 1;       ///< nodes, and GPUs on each
  LinkKind links = LinkKind::nvlink;  ///< what joins the GPUs of a node

#define FIELD(group, name, least, most, summary) uint64_t group##_##name = 0;
#include "plans/format/machines/machine_fields.def"
#undef FIELD

  uint32_t ranks() const { return nodes * gpus; }
  /// Are two ranks in one node?
  bool same_node(uint32_t a, uint32_t b) const { return a / gpus == b / gpus; }
  /// Where only ports lead to a rank, its scratch lies in the host's memory, for the network.
  bool scratch_on_host() const { return gpus == 1 && nodes > 1; }
  /// Latency and rate of what joins the GPUs of a node.
  uint64_t link_latency_ns() const {
    return links == LinkKind::pcie ? pcie_latency_ns : nvlink_latency_ns;
  }
  uint64_t link_mb_per_s() const {
    return links == LinkKind::pcie ? pcie_mb_per_s : nvlink_mb_per_s;
  }
};

/// A row of machine_fields.def.
struct MachineField {
  std::string_view group, name;
  uint64_t least, most;
  std::string_view summary;
  uint64_t Machine::*value;
};
/// All rows, in their order.
std::span<const MachineField> machine_fields();

/// Reads a machine file. `name`: of the file, for messages. Errors: not-a-machine and those of
/// JSON.
[[nodiscard]] std::optional<Machine> read_machine(std::string_view text, const std::string& name,
                                                  Diagnostics& diagnostics);
/// The text of a machine file: read_machine() gives the machine back.
std::string machine_text(const Machine& machine);

/// The built-in machines, the files of plans/machines, in the order of their names.
const std::vector<Machine>& builtin_machines();
/// A built-in machine by name, or a machine file by path. Errors: unknown-machine and the above.
[[nodiscard]] std::optional<Machine> find_machine(const std::string& name_or_path,
                                                  Diagnostics& diagnostics);

}  // namespace mscclc
