// How a thread that polls rests while nothing moves: first not at all, then by letting others run,
// then asleep, so that more ranks than processors still get on. The longer nothing has moved, the
// longer it sleeps, but only for a small part of that time: what comes late comes hardly later for
// it, and a long wait uses next to no processor.
#pragma once

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>

namespace mscclc {

class Idle {
  using Clock = std::chrono::steady_clock;

 public:
  /// `awake`: how long it lets others run, at least, before it sleeps.
  explicit Idle(std::chrono::microseconds awake = std::chrono::microseconds{0}) : awake_(awake) {}
  void reset() { rests_ = 0; }
  void rest() {
    if (rests_ == 0) since_ = Clock::now();
    const bool sleeps = is_tired();
    ++rests_;
    if (rests_ < kSpins) return;
    if (sleeps) {
      std::this_thread::sleep_for(std::clamp<Clock::duration>((Clock::now() - since_) / kPart,
                                                              kShortestSleep, kLongestSleep));
    } else {
      sched_yield();
    }
  }
  /// Has so long been idle that it sleeps in its next rest.
  bool is_tired() const { return rests_ >= kYields && Clock::now() - since_ >= awake_; }

 private:
  static constexpr uint64_t kSpins = 64, kYields = 2048;
  static constexpr int kPart = 64;  ///< a sleep is this part of the time since something moved
  static constexpr std::chrono::microseconds kShortestSleep{50}, kLongestSleep{1000};
  const std::chrono::microseconds awake_;
  Clock::time_point since_;  ///< that of the first rest
  uint64_t rests_ = 0;
};

}  // namespace mscclc
