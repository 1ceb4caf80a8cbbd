// Events of devices, made once and used again: to make one takes microseconds, and some drivers
// wait for the device when one ends.
#pragma once

#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace mscclc::torch_adapter {

/// Events that are not in use, by device. From any thread.
class EventPool {
 public:
  static constexpr size_t kMax = 1024;  ///< of a device; what comes back beyond that ends

  /// An event of this device, made only where none is free. What was recorded there counts no more
  /// once it is recorded again.
  std::unique_ptr<c10::Event> take(const c10::Device& device);
  void give_back(const c10::Device& device, std::unique_ptr<c10::Event> event);

 private:
  using Key = std::pair<c10::DeviceType, c10::DeviceIndex>;
  std::mutex mutex_;
  std::map<Key, std::vector<std::unique_ptr<c10::Event>>> free_;
};

/// An event that comes from the pool of the process when it is first recorded, and goes back there.
/// Streams that wait for it by then go on doing so.
class PooledEvent {
 public:
  PooledEvent() = default;
  ~PooledEvent();
  PooledEvent(PooledEvent&&) = default;
  PooledEvent(const PooledEvent&) = delete;
  PooledEvent& operator=(const PooledEvent&) = delete;

  void record(const c10::Stream& stream);
  /// The stream waits for it. All three do nothing before it is recorded.
  void block(const c10::Stream& stream) const;
  /// Whether the device is done.
  bool query() const { return event_ == nullptr || event_->query(); }
  /// The host waits for it.
  void synchronize() const;

 private:
  std::unique_ptr<c10::Event> event_;
};

}  // namespace mscclc::torch_adapter
