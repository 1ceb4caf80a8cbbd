#include "runtime/slots.h"

#include <algorithm>

namespace mscclc {
namespace {

constexpr uint64_t kSlab = 256 << 10;
constexpr uint64_t kLine = 128;

}  // namespace

SlotPool::SlotPool(std::shared_ptr<Device> device, uint64_t slot_bytes)
    : device_(std::move(device)), slot_bytes_((slot_bytes + kLine - 1) / kLine * kLine) {}

bool SlotPool::grow(Diagnostics& diagnostics) {
  const uint64_t slots = std::max<uint64_t>(1, kSlab / slot_bytes_);
  auto slab = device_->allocate(slots * slot_bytes_, "programs of calls", diagnostics);
  if (slab == nullptr) return false;
  for (uint64_t i = slots; i > 0; --i) free_.push_back(slab->data() + (i - 1) * slot_bytes_);
  slabs_.push_back(std::move(slab));
  return true;
}

SlotPool::Slot SlotPool::take(Diagnostics& diagnostics) {
  const std::lock_guard lock(mutex_);
  if (free_.empty() && !grow(diagnostics)) return nullptr;
  uint8_t* slot = free_.back();
  free_.pop_back();
  return {slot, [pool = shared_from_this()](uint8_t* given) {
            const std::lock_guard give(pool->mutex_);
            pool->free_.push_back(given);
          }};
}

}  // namespace mscclc
