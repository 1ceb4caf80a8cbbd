#include "runtime/core/device/remote_regions.h"

#include "ir/support/precondition.h"

namespace mscclc {

class RemoteRegions::Known final : public Memory {
 public:
  Known(std::shared_ptr<RemoteRegions> regions, uint32_t peer, std::unique_ptr<Memory> memory)
      : regions_(std::move(regions)), memory_(std::move(memory)) {
    data_ = memory_->data();
    bytes_ = memory_->bytes();
    const std::lock_guard lock(regions_->mutex_);
    entry_ =
        regions_->regions_.emplace(Key{peer, reinterpret_cast<uintptr_t>(data_)}, memory_.get());
  }
  ~Known() override {
    const std::lock_guard lock(regions_->mutex_);
    regions_->regions_.erase(entry_);
  }

 private:
  const std::shared_ptr<RemoteRegions> regions_;
  const std::unique_ptr<Memory> memory_;
  std::multimap<Key, const Memory*>::iterator entry_;
};

std::unique_ptr<Memory> RemoteRegions::add(uint32_t peer, std::unique_ptr<Memory> memory) {
  precondition([&] { return !weak_from_this().expired(); });
  if (memory == nullptr) return nullptr;
  return std::make_unique<Known>(shared_from_this(), peer, std::move(memory));
}

// Regions of one process may overlap: a piece of a registered buffer may be registered, too. So the
// nearest that begins before the address is not always one that holds it.
std::optional<RemotePlace> RemoteRegions::find(uint32_t peer, const void* address,
                                               uint64_t bytes) const {
  const auto at = reinterpret_cast<uintptr_t>(address);
  const std::lock_guard lock(mutex_);
  for (auto region = regions_.upper_bound(Key{peer, at}); region != regions_.begin();) {
    const auto& [key, memory] = *--region;
    if (key.first != peer) break;
    const uint64_t offset = at - key.second;
    if (offset <= memory->bytes() && bytes <= memory->bytes() - offset) {
      return RemotePlace{memory, offset};
    }
  }
  return std::nullopt;
}

}  // namespace mscclc
