#include "python/mscclc/torch/adapter/lanes/event_pool.h"

#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace mscclc::torch_adapter {
namespace {

/// Never destroyed: the driver may end before that.
struct FreeEvents {
  using Key = std::pair<c10::DeviceType, c10::DeviceIndex>;
  std::mutex mutex;
  std::map<Key, std::vector<std::unique_ptr<c10::Event>>> events;

  std::vector<std::unique_ptr<c10::Event>>& of(const c10::Device& device) {
    return events[{device.type(), device.index()}];
  }
};

FreeEvents& free_events() {
  static auto* made = new FreeEvents;
  return *made;
}

}  // namespace

std::unique_ptr<c10::Event> EventPool::take(const c10::Device& device) {
  {
    const std::lock_guard lock(free_events().mutex);
    auto& events = free_events().of(device);
    if (!events.empty()) {
      auto event = std::move(events.back());
      events.pop_back();
      return event;
    }
  }
  return std::make_unique<c10::Event>(device.type());
}

void EventPool::give_back(const c10::Device& device, std::unique_ptr<c10::Event> event) {
  const std::lock_guard lock(free_events().mutex);
  auto& events = free_events().of(device);
  if (events.size() < kMax) events.push_back(std::move(event));
}

PooledEvent::~PooledEvent() {
  if (event_ == nullptr) return;
  const c10::Device device = event_->device();
  EventPool::give_back(device, std::move(event_));
}

void PooledEvent::record(const c10::Stream& stream) {
  if (event_ == nullptr) event_ = EventPool::take(stream.device());
  event_->record(stream);
}

void PooledEvent::block(const c10::Stream& stream) const {
  if (event_ != nullptr) event_->block(stream);
}

void PooledEvent::synchronize() const {
  if (event_ != nullptr) event_->synchronize();
}

}  // namespace mscclc::torch_adapter
