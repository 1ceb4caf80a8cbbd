// A thread of the process that looks at all its communicators several times a second, so that a
// failure is noticed even if check() is not called.
//
// Thread safety: from any thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "ir/diagnostics/diagnostic.h"
#include "runtime/support/fixed_times.h"

namespace mscclc {

class Watchdog {
 public:
  static constexpr std::chrono::milliseconds kPeriod = kWatchdogPeriod;

  /// Something that is watched until this is destroyed.
  class Watch {
   public:
    Watch(std::shared_ptr<Watchdog> dog, uint64_t number) : dog_(std::move(dog)), number_(number) {}
    ~Watch() { dog_->remove(number_); }
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;
    /// What makes the watchdog look every millisecond for a while, from any thread, also in a look,
    /// and after the watch has ended.
    std::function<void()> haste() const;

   private:
    const std::shared_ptr<Watchdog> dog_;
    const uint64_t number_;
  };

  /// Calls `look` every period, from the watchdog's thread; it must not end a watch. nullptr:
  /// reported (no-thread).
  [[nodiscard]] static std::unique_ptr<Watch> watch(std::function<void()> look,
                                                    Diagnostics& diagnostics);
  ~Watchdog();

 private:
  struct OfProcess;
  using Clock = std::chrono::steady_clock;
  Watchdog() = default;
  void serve();
  /// Until it is to look again. False: until the end.
  bool rest();
  void hasten();
  void remove(uint64_t number);

  std::mutex mutex_;  ///< held while it looks
  std::map<uint64_t, std::function<void()>> watched_;
  uint64_t next_ = 0;
  std::mutex resting_;  ///< of the next four
  std::condition_variable changed_;
  Clock::time_point haste_until_{};
  bool new_haste_ = false;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace mscclc
