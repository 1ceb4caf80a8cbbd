// How often the two ends of a bootstrap's connection look and speak.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

#include "runtime/api/bootstrap.h"
#include "runtime/support/deadline.h"
#include "runtime/support/fixed_times.h"

namespace mscclc {

/// Unix sockets that a job's hub may listen at: others may hold some of the names.
constexpr uint16_t kLocalNames = 16;
/// The unix socket at which a hub listens when all ranks have come, for those that come too late.
/// No hub that waits for ranks needs its name.
constexpr uint16_t kLateName = 0;

/// Each end says something this often, if only that it lives.
inline std::chrono::milliseconds heartbeat(std::chrono::milliseconds silence) {
  return std::min<std::chrono::milliseconds>(silence / 4, std::chrono::seconds(5));
}
/// How often an end looks up that has nothing to do.
inline int idle_tick_ms(std::chrono::milliseconds silence) {
  return static_cast<int>(std::min<int64_t>(heartbeat(silence).count() / 2, 1000));
}

/// Notices that its loop did not run for a while: the process was stopped, or its machine was.
/// The others may have taken it for dead, so what is heard next is no fault of theirs.
class StopDetector {
 public:
  explicit StopDetector(std::chrono::milliseconds silence) : silence_(silence) {}

  /// To be called on each turn of a loop that waits at most idle_tick_ms(). true: it was stopped
  /// long enough to be taken for dead, as its last word may be a heartbeat's time older.
  bool look(SteadyTime now) {
    const auto asleep = runs_ ? now - looked_ : SteadyTime::duration::zero();
    runs_ = true;
    looked_ = now;
    if (asleep < silence_ / 2) return false;
    asleep_ = asleep;
    woke_ = now;
    return true;
  }
  /// How long it was stopped, if it woke so lately that the others' answer to that is news.
  std::optional<SteadyTime::duration> just_stopped() const {
    if (asleep_.count() == 0 || looked_ - woke_ >= heartbeat(silence_)) return std::nullopt;
    return asleep_;
  }

 private:
  const std::chrono::milliseconds silence_;
  bool runs_ = false;
  SteadyTime looked_, woke_;
  SteadyTime::duration asleep_{};
};

}  // namespace mscclc
