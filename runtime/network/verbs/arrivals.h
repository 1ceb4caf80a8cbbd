// How what comes over a lane reaches memory of a GPU, where the processor cannot write it.
#pragma once

#include <string>

#include "runtime/network/exposed_memory.h"

namespace mscclc::verbs {

/// The far end of one lane has one. Thread safety: the reactor's thread.
class Arrivals {
 public:
  /// Waits for all that was begun.
  virtual ~Arrivals() = default;
  /// Begins to copy what has come to a piece's staging memory on to the piece. False: `why`.
  [[nodiscard]] virtual bool land(const ExposedMemory::Piece& piece, uint64_t bytes,
                                  std::string& why) = 0;
  /// Sets a count after all that has come before, by whichever way. False: `why`.
  [[nodiscard]] virtual bool signal(const ExposedMemory::Piece& count, uint64_t value,
                                    std::string& why) = 0;
  /// Waits for all that was begun. False: `why`.
  [[nodiscard]] virtual bool settle(std::string& why) = 0;
};

}  // namespace mscclc::verbs
