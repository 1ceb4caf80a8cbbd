// How a thread that polls rests while nothing moves: first not at all, then by letting others run,
// then asleep, so that more ranks than processors still get on. The longer nothing has moved, the
// longer it sleeps, but only for a small part of that time: what comes late comes hardly later for
// it, and a long wait uses next to no processor.
//
// A thread that lets others run on a processor where a thread computes gets it back a whole time
// slice later, some milliseconds; one that sleeps a moment gets it back when the moment is over. So
// after a rest that took so long, it sleeps at once for a while.
#pragma once

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>

namespace mscclc {

/// The system's clock, and its two ways to rest.
struct SystemRests {
  using Clock = std::chrono::steady_clock;
  static Clock::time_point now() { return Clock::now(); }
  static void yield() { sched_yield(); }
  static void sleep(Clock::duration time) { std::this_thread::sleep_for(time); }
};

/// `System`: SystemRests, or what a test has in its place.
template <class System>
class IdleOn {
  using Clock = typename System::Clock;

 public:
  /// `awake`: how long it lets others run, at least, before it sleeps, where they do not compute.
  explicit IdleOn(std::chrono::microseconds awake = std::chrono::microseconds{0}) : awake_(awake) {}
  /// Something has moved.
  void reset() { rests_ = 0; }
  void rest() {
    if (rests_ == 0) since_ = System::now();
    if (rests_ >= kSpins) let_others_run(System::now());
    ++rests_;
  }
  /// Has so long been idle that it sleeps in its next rest.
  bool is_tired() const { return rests_ >= kSpins && is_tired(System::now()); }

 private:
  static constexpr uint64_t kSpins = 64, kYields = 2048;
  static constexpr int kPart = 64;  ///< a sleep is this part of the time since something moved
  static constexpr std::chrono::microseconds kShortestSleep{50}, kLongestSleep{1000};
  /// A thread that gets the processor back after so long has left it to a thread that computes. It
  /// tries that again when some times as long has passed.
  static constexpr std::chrono::microseconds kSlice{1000};
  static constexpr int kUntilAgain = 16;

  bool is_tired(typename Clock::time_point now) const {
    return now < crowded_until_ || (rests_ >= kYields && now - since_ >= awake_);
  }
  void let_others_run(typename Clock::time_point now) {
    if (is_tired(now)) {
      return System::sleep(std::clamp<typename Clock::duration>((now - since_) / kPart,
                                                                kShortestSleep, kLongestSleep));
    }
    System::yield();
    const auto took = System::now() - now;
    if (took >= kSlice) crowded_until_ = now + (1 + kUntilAgain) * took;
  }

  const std::chrono::microseconds awake_;
  typename Clock::time_point since_;            ///< that of the first rest
  typename Clock::time_point crowded_until_{};  ///< stays when something moves
  uint64_t rests_ = 0;
};

using Idle = IdleOn<SystemRests>;

}  // namespace mscclc
