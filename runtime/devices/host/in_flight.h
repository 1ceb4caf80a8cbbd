// What a device of the host has queued and not done yet, on streams of its own and of other
// devices.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

namespace mscclc {

/// Thread safety: from any thread.
class InFlight : public std::enable_shared_from_this<InFlight> {
 public:
  /// To be kept by what is queued, until it has been done or left out.
  [[nodiscard]] std::shared_ptr<void> begin() {
    const std::lock_guard lock(mutex_);
    ++count_;
    return {nullptr, [all = shared_from_this()](void*) { all->end(); }};
  }
  /// Waits until nothing is left.
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return count_ == 0; });
  }

 private:
  void end() {
    const std::lock_guard lock(mutex_);
    if (--count_ == 0) changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t count_ = 0;
};

}  // namespace mscclc
