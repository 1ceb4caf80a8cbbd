#include "tests/gpu/held.h"

#include <fmt/format.h>

#include "tests/helpers/runtime/descriptors.h"
#include "tests/helpers/runtime/named_threads.h"

namespace mscclc::testing {

// Between the barriers all ranks count. In a process with several of them opening /proc/self/fd is
// seen by the others, so they take turns.
bool count_held(Communicator& communicator, Graphs& graphs, Held& held, Diagnostics& diagnostics) {
  for (uint32_t r = 0; r < communicator.size(); ++r) {
    if (!communicator.bootstrap().barrier("begin to count", diagnostics)) return false;
    if (r == communicator.rank()) {
      held = {open_descriptors(), running_threads(), graphs.free_bytes().value_or(0)};
    }
  }
  return communicator.bootstrap().barrier("end to count", diagnostics);
}

std::string text(const Held& held) {
  return fmt::format("{} descriptors, {} threads, {} bytes of the device left", held.descriptors,
                     held.threads, held.device_bytes_left);
}

}  // namespace mscclc::testing
