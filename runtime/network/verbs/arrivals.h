// How what comes over a lane reaches memory of a GPU, where the processor cannot write it.
#pragma once

#include "ir/support/result.h"
#include "runtime/network/exposed_memory.h"

namespace mscclc::verbs {

/// The far end of one lane has one. Thread safety: the reactor's thread.
class Arrivals {
 public:
  /// Waits for all that was begun.
  virtual ~Arrivals() = default;
  /// Begins to copy what has come to a piece's staging memory on to the piece.
  virtual Result<void> land(const ExposedMemory::Piece& piece, uint64_t bytes) = 0;
  /// Sets a count after all that has come before, by whichever way.
  virtual Result<void> signal(const ExposedMemory::Piece& count, uint64_t value) = 0;
  /// Waits for all that was begun.
  virtual Result<void> settle() = 0;
};

}  // namespace mscclc::verbs
