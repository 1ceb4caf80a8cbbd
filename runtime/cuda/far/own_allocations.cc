#include "runtime/cuda/far/own_allocations.h"

namespace mscclc::cuda {

class OwnAllocations::Known final : public Memory {
 public:
  Known(std::shared_ptr<OwnAllocations> all, std::unique_ptr<Memory> memory)
      : all_(std::move(all)), memory_(std::move(memory)) {
    data_ = memory_->data();
    bytes_ = memory_->bytes();
    const std::lock_guard lock(all_->mutex_);
    all_->all_[data_] = memory_;
  }
  // Forgotten first: once it has gone another allocation may lie there.
  ~Known() override {
    const std::lock_guard lock(all_->mutex_);
    all_->all_.erase(data_);
  }

 private:
  const std::shared_ptr<OwnAllocations> all_;
  const std::shared_ptr<const Memory> memory_;
};

std::unique_ptr<Memory> OwnAllocations::add(std::unique_ptr<Memory> memory) {
  if (memory == nullptr) return nullptr;
  return std::make_unique<Known>(shared_from_this(), std::move(memory));
}

std::shared_ptr<const void> OwnAllocations::find(const void* address, uint64_t bytes) const {
  const auto* const at = static_cast<const uint8_t*>(address);
  const std::lock_guard lock(mutex_);
  auto entry = all_.upper_bound(at);
  if (entry == all_.begin()) return nullptr;
  --entry;
  std::shared_ptr<const Memory> memory = entry->second.lock();
  if (memory == nullptr) return nullptr;
  const auto offset = static_cast<uint64_t>(at - entry->first);
  return offset <= memory->bytes() && bytes <= memory->bytes() - offset ? memory : nullptr;
}

}  // namespace mscclc::cuda
