// Where a process runs, as far as sharing memory goes: a machine within a network namespace, in
// which processes of one user pass each other descriptors of memory. Namespaces of other kinds
// (IPC, PID, user, mount) do not matter for that, nor does /dev/shm.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "ir/diagnostics/diagnostic.h"

namespace mscclc {

struct HostPlace {
  std::array<uint8_t, 36> boot = {};  ///< the machine's boot id: one in all containers
  uint64_t device = 0, inode = 0;     ///< of the network namespace
  bool operator==(const HostPlace&) const = default;
};

/// nullopt: reported (no-node).
[[nodiscard]] std::optional<HostPlace> this_host_place(Diagnostics& diagnostics);
/// A text that no other place has. `simulated`: a node's number, where a place is divided into
/// several.
std::string text_of(const HostPlace& place, std::optional<uint32_t> simulated);

}  // namespace mscclc
