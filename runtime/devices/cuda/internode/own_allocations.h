// What a device has allocated, so that lanes can keep it while they write to it.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "runtime/api/device.h"
#include "runtime/support/memory/attached_resources.h"

namespace mscclc::cuda {

/// An allocation, and what lives as long.
class OwnAllocation {
 public:
  explicit OwnAllocation(std::unique_ptr<Memory> memory) : memory_(std::move(memory)) {}

  const Memory& memory() const { return *memory_; }
  AttachedResources& attached() { return attached_; }

 private:
  const std::unique_ptr<Memory> memory_;
  AttachedResources attached_;  ///< last: they end while the memory is there
};

/// Thread safety: from any thread.
class OwnAllocations : public std::enable_shared_from_this<OwnAllocations> {
 public:
  /// The same memory, known here while it lives. nullptr stays nullptr. REQUIRES: this is owned by
  /// a shared_ptr.
  [[nodiscard]] std::unique_ptr<Memory> add(std::unique_ptr<Memory> memory);
  /// The allocation that holds all of `bytes` bytes at `address`. nullptr: it is another
  /// allocator's.
  std::shared_ptr<OwnAllocation> find(const void* address, uint64_t bytes) const;

 private:
  class Known;
  mutable std::mutex mutex_;
  std::map<const uint8_t*, std::weak_ptr<OwnAllocation>> all_;
};

}  // namespace mscclc::cuda
