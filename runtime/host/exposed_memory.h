// The memory of this rank that messages of peers may write, by numbers: what a peer's lane names.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "runtime/host/host_memory.h"

namespace mscclc {

/// Thread safety: from any thread.
class ExposedMemory {
 public:
  /// Lets peers write `bytes` bytes at `data`, which lie in `mapping`, as long as that lives.
  ExposedId add(const std::shared_ptr<SharedMapping>& mapping, uint8_t* data, uint64_t bytes);

  /// A piece that a message is for.
  struct Piece {
    enum class State {
      here,
      gone,    ///< it was freed: nobody looks at it any more
      unknown  ///< it never was, or the piece is not all inside
    } state = State::unknown;
    std::shared_ptr<SharedMapping> mapping;  ///< keeps it while it is written
    uint8_t* data = nullptr;
  };
  Piece find(ExposedId id, uint64_t offset, uint64_t bytes);

 private:
  struct Entry {
    std::weak_ptr<SharedMapping> mapping;
    uint8_t* data;
    uint64_t bytes;
  };
  std::mutex mutex_;
  ExposedId next_ = 1;
  std::map<ExposedId, Entry> entries_;
};

}  // namespace mscclc
