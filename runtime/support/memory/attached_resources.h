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
class Companions {
 public:
  using Companion = std::shared_ptr<const void>;
  /// `of`: whose it is; no other has that address while it lives. nullptr: `make` has made nothing.
  Companion get(const void* of, uint64_t offset, uint64_t bytes,
                const std::function<Companion()>& make) {
    const std::lock_guard lock(mutex_);
    Companion& companion = all_[{of, offset, bytes}];
    if (companion == nullptr) companion = make();
    return companion;
  }
  void clear() { all_.clear(); }

 private:
  std::mutex mutex_;
  std::map<std::tuple<const void*, uint64_t, uint64_t>, Companion> all_;
};

}  // namespace mscclc
