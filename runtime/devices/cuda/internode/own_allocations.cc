#include "runtime/devices/cuda/internode/own_allocations.h"

#include "ir/support/precondition.h"

namespace mscclc::cuda {

class OwnAllocations::Known final : public Memory {
 public:
  Known(std::shared_ptr<OwnAllocations> all, std::unique_ptr<Memory> memory)
      : all_(std::move(all)) {
    data_ = memory->data();
    bytes_ = memory->bytes();
    allocation_ = std::make_shared<OwnAllocation>(std::move(memory));
    const std::lock_guard lock(all_->mutex_);
    all_->all_[data_] = allocation_;
  }
  // Forgotten first: once it has gone another allocation may lie there.
  ~Known() override {
    const std::lock_guard lock(all_->mutex_);
    all_->all_.erase(data_);
  }

 private:
  const std::shared_ptr<OwnAllocations> all_;
  std::shared_ptr<OwnAllocation> allocation_;
};

std::unique_ptr<Memory> OwnAllocations::add(std::unique_ptr<Memory> memory) {
  precondition([&] { return !weak_from_this().expired(); });
  if (memory == nullptr) return nullptr;
  return std::make_unique<Known>(shared_from_this(), std::move(memory));
}

std::shared_ptr<OwnAllocation> OwnAllocations::find(const void* address, uint64_t bytes) const {
  const auto* const at = static_cast<const uint8_t*>(address);
  const std::lock_guard lock(mutex_);
  auto entry = all_.upper_bound(at);
  if (entry == all_.begin()) return nullptr;
  --entry;
  std::shared_ptr<OwnAllocation> allocation = entry->second.lock();
  if (allocation == nullptr) return nullptr;
  const auto offset = static_cast<uint64_t>(at - entry->first);
  const uint64_t size = allocation->memory().bytes();
  return offset <= size && bytes <= size - offset ? allocation : nullptr;
}

}  // namespace mscclc::cuda
