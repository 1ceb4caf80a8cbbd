// What a device has allocated, so that lanes can keep it while they write to it.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "runtime/api/device.h"

namespace mscclc::cuda {

/// Thread safety: from any thread.
class OwnAllocations : public std::enable_shared_from_this<OwnAllocations> {
 public:
  /// The same memory, known here while it lives. nullptr stays nullptr. REQUIRES: this is owned by
  /// a shared_ptr.
  [[nodiscard]] std::unique_ptr<Memory> add(std::unique_ptr<Memory> memory);
  /// What keeps the allocation that holds all of `bytes` bytes at `address`. nullptr: it is another
  /// allocator's.
  std::shared_ptr<const void> find(const void* address, uint64_t bytes) const;

 private:
  class Known;
  mutable std::mutex mutex_;
  std::map<const uint8_t*, std::weak_ptr<const Memory>> all_;
};

}  // namespace mscclc::cuda
