// How many calls are queued whose copies the host makes. A launch that waits for room in the driver
// may hold a lock that these copies need: then the copies wait for the launch, and it for a kernel
// that waits for the copies.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <thread>

#include "runtime/api/device.h"
#include "runtime/support/fixed_times.h"

namespace mscclc {

/// Of all executables of a rank. Thread safety: one thread at a time.
class CopyCalls {
 public:
  /// Waits until the device has room for one more call, which is about to be launched. A few more
  /// are let through where that takes longer than kRoomPatience; but never so many that the driver
  /// would have to wait: then until one has ended, or `has_failed` says that none will. False: the
  /// call is not counted, as one that is captured is not.
  bool make_room(Device& device, StreamHandle stream, const std::function<bool()>& has_failed) {
    const uint32_t most = device.max_copy_calls();
    if (most == 0 || device.is_capturing(stream)) return false;
    const auto end = std::chrono::steady_clock::now() + kRoomPatience;
    forget_ended();
    if (marks_.empty()) waits_ = true;
    while (marks_.size() >= (waits_ ? most : kLetThrough * most) && !has_failed()) {
      if (std::chrono::steady_clock::now() > end) waits_ = false;  // until all have ended
      std::this_thread::sleep_for(kRest);
      forget_ended();
    }
    return true;
  }
  /// That call, which counts, has been put on the stream.
  void launched(Device& device, StreamHandle stream) {
    std::unique_ptr<StreamMark> mark = std::move(spare_);
    Diagnostics ignored;  // then it is not counted
    if (device.mark(stream, mark, ignored)) marks_.push_back(std::move(mark));
  }

  /// From one look to the next, at least (some 60 µs with Linux's usual slack): looks take a lock
  /// of the driver that the copies need. The calls that are queued meanwhile take longer than that.
  static constexpr std::chrono::microseconds kRest{10};

 private:
  static constexpr size_t kLetThrough = 3;  ///< times Device::max_copy_calls()

  void forget_ended() {
    while (!marks_.empty() && marks_.front()->reached()) {
      spare_ = std::move(marks_.front());
      marks_.pop_front();
    }
  }

  std::deque<std::unique_ptr<StreamMark>> marks_;  ///< after each call that may be under way
  std::unique_ptr<StreamMark> spare_;
  bool waits_ = true;  ///< false: waiting was in vain
};

}  // namespace mscclc
