#include "python/mscclc/torch/adapter/queues/event_pool.h"

#include "python/mscclc/torch/adapter/process_state.h"

namespace mscclc::torch_adapter {

std::unique_ptr<c10::Event> EventPool::take(const c10::Device& device) {
  {
    const std::lock_guard lock(mutex_);
    auto& events = free_[{device.type(), device.index()}];
    if (!events.empty()) {
      auto event = std::move(events.back());
      events.pop_back();
      return event;
    }
  }
  return std::make_unique<c10::Event>(device.type());
}

void EventPool::give_back(const c10::Device& device, std::unique_ptr<c10::Event> event) {
  const std::lock_guard lock(mutex_);
  auto& events = free_[{device.type(), device.index()}];
  if (events.size() < kMax) events.push_back(std::move(event));
}

PooledEvent::~PooledEvent() {
  if (event_ == nullptr) return;
  const c10::Device device = event_->device();
  ProcessState::get().events.give_back(device, std::move(event_));
}

void PooledEvent::record(const c10::Stream& stream) {
  if (event_ == nullptr) event_ = ProcessState::get().events.take(stream.device());
  event_->record(stream);
}

void PooledEvent::block(const c10::Stream& stream) const {
  if (event_ != nullptr) event_->block(stream);
}

void PooledEvent::synchronize() const {
  if (event_ != nullptr) event_->synchronize();
}

}  // namespace mscclc::torch_adapter
