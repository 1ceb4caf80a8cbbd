// Collectives of this library before or after GEMMs: ready when the object is, so that the first
// run may be captured.
#pragma once

#include "runtime/api/collectives.h"
#include "runtime/core/overlap/backend.h"

namespace mscclc::overlap {

/// The job outlives it. Thread safety: the communicator's.
class LibraryCalls {
 public:
  explicit LibraryCalls(const Job& job) : job_(job) {}
  /// Picks, loads and binds what calls like this one need, captured or not; collective. Of its
  /// buffers only their offsets in memory of twice the message matter. False: reported, and the
  /// communicator is aborted, as others may wait.
  [[nodiscard]] bool load(CollectiveCall call, uint64_t input_offset, uint64_t output_offset,
                          Diagnostics& diagnostics);
  [[nodiscard]] bool call(const CollectiveCall& call, StreamHandle stream,
                          Diagnostics& diagnostics) {
    return job_.owner.collectives->call(call, stream, diagnostics);
  }

 private:
  bool prepare(const CollectiveCall& call, bool captured, StreamHandle stream,
               Diagnostics& diagnostics);

  const Job& job_;
};

}  // namespace mscclc::overlap
