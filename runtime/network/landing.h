// How orders of a lane reach memory that this machine's processor cannot write: a GPU's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/network/exposed_memory.h"

namespace mscclc::net {

/// The far end of one lane has one. Thread safety: land() and why() from any thread, all others by
/// one thread at a time.
class Landing {
 public:
  /// Bytes of one put, on their way from a connection to the device.
  class Room {
   public:
    virtual ~Room() = default;
    uint8_t* data() const { return data_; }

   protected:
    uint8_t* data_ = nullptr;
  };

  /// Waits until no copy is under way any more.
  virtual ~Landing() = default;
  /// Host memory, on a word's bound, for a put of so many bytes, at most OrderReader::kMaxPut.
  /// Waits while all is taken by copies under way. nullptr: why() says why.
  virtual std::unique_ptr<Room> room(uint64_t bytes) = 0;
  /// Begins to copy what has come to a piece, which it keeps until that is done. False: why().
  [[nodiscard]] virtual bool land(const ExposedMemory::Piece& to, std::unique_ptr<Room> room,
                                  uint64_t bytes) = 0;
  /// Sets a count, wherever it lies, after all that was landed before; likewise.
  [[nodiscard]] virtual bool signal(const ExposedMemory::Piece& count, uint64_t value) = 0;
  /// Has all that was begun been done? Then the processor may write counts itself.
  virtual bool idle() = 0;
  /// Waits for that. False: why().
  [[nodiscard]] virtual bool settle() = 0;
  virtual std::string why() const = 0;
};

}  // namespace mscclc::net
