// The regions of peers that a rank's blocks can name: from the addresses that they post to the
// proxy's queue (executor/launch.h) back to region and offset, which is what lanes take.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "runtime/api/device.h"

namespace mscclc {

/// Thread safety: from any thread.
class RemoteRegions : public std::enable_shared_from_this<RemoteRegions> {
 public:
  /// Knows memory of `peer`, which a device has imported or reached, as long as the result lives.
  /// That owns it and lies where it lies. REQUIRES: this is owned by a shared_ptr.
  [[nodiscard]] std::unique_ptr<Memory> add(uint32_t peer, std::unique_ptr<Memory> memory);
  /// The place of `bytes` bytes at `address`; nullopt: they are not all in one region of that peer.
  std::optional<RemotePlace> find(uint32_t peer, const void* address, uint64_t bytes) const;

 private:
  class Known;
  using Key = std::pair<uint32_t, uintptr_t>;  ///< peer and first address
  mutable std::mutex mutex_;
  std::multimap<Key, const Memory*> regions_;
};

}  // namespace mscclc
