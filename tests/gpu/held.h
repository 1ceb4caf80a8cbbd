// What a process holds of the system, to see that nothing is left behind.
#pragma once

#include <cstdint>
#include <string>

#include "tests/gpu/stage/graphs.h"

namespace mscclc::testing {

struct Held {
  uint64_t descriptors = 0, threads = 0;
  uint64_t device_bytes_left = 0;  ///< 0 where the device does not say
  bool operator==(const Held&) const = default;
};

/// Collective: counts when no rank makes or destroys anything. False: the ranks could not talk.
[[nodiscard]] bool count_held(Communicator& communicator, Graphs& graphs, Held& held,
                              Diagnostics& diagnostics);
std::string text(const Held& held);

}  // namespace mscclc::testing
