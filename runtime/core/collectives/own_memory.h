// Device memory of the layer's own: rows of alltoallv, the element of a barrier. It grows with the
// calls, by doubling; what is too small stays, as calls that run and graphs may use it. Calls of a
// communicator follow one another, so all of them share it.
#pragma once

#include <memory>
#include <vector>

#include "runtime/api/device.h"

namespace mscclc {

/// Thread safety: one thread at a time.
class OwnMemory {
 public:
  /// At least so many bytes, zeros when they are new. nullptr: reported.
  [[nodiscard]] uint8_t* take(Device& device, uint64_t bytes, Diagnostics& diagnostics);
  /// All that is held.
  uint64_t bytes() const;

 private:
  std::vector<std::unique_ptr<Memory>> pieces_;  ///< the largest is the last
};

}  // namespace mscclc
