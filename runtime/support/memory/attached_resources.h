// What lives as long as memory, such as the registration of a piece of it with a network device:
// made when it is first asked for.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

namespace mscclc {

/// The owner of the memory owns these, and ends them first. Thread safety: from any thread.
class AttachedResources {
 public:
  using AttachedResource = std::shared_ptr<const void>;
  /// `of`: whose it is; no other has that address while it lives. nullptr: `make` has made nothing.
  AttachedResource get(const void* of, uint64_t offset, uint64_t bytes,
                       const std::function<AttachedResource()>& make) {
    const std::lock_guard lock(mutex_);
    AttachedResource& resource = all_[{of, offset, bytes}];
    if (resource == nullptr) resource = make();
    return resource;
  }
  void clear() { all_.clear(); }

 private:
  std::mutex mutex_;
  std::map<std::tuple<const void*, uint64_t, uint64_t>, AttachedResource> all_;
};

}  // namespace mscclc
