// How a thread that polls rests while nothing moves: first not at all, then by letting others run,
// then asleep, so that more ranks than processors still get on.
#pragma once

#include <sched.h>

#include <chrono>
#include <cstdint>
#include <thread>

namespace mscclc {

class Idle {
 public:
  void reset() { rests_ = 0; }
  void rest() {
    ++rests_;
    if (rests_ < kSpins) return;
    if (rests_ < kYields) {
      sched_yield();
    } else {
      std::this_thread::sleep_for(kSleep);
    }
  }

 private:
  static constexpr uint32_t kSpins = 64, kYields = 2048;
  static constexpr std::chrono::microseconds kSleep{50};
  uint32_t rests_ = 0;
};

}  // namespace mscclc
