// Whether calls of a rank run now. A driver may wait for what runs when it loads kernels, and calls
// wait for other ranks: so kernels that have come are loaded while none of this rank's runs.
#pragma once

#include <memory>

#include "ir/support/precondition.h"
#include "runtime/api/device.h"

namespace mscclc {

/// Of calls that follow one another. It costs nothing until it is wanted. Thread safety: one thread
/// at a time.
class Pause {
 public:
  bool is_wanted() const { return wanted_; }
  /// From now on it looks at launches.
  void want() {
    if (!wanted_) *this = Pause();
    wanted_ = true;
  }
  /// All calls that were launched have ended, the first of which it has looked at.
  bool has_come() { return wanted_ && mark_ != nullptr && is_last_ && mark_->reached(); }
  /// Nothing waits for it any more.
  void end() { *this = Pause(); }

  /// A call has been put on a stream. REQUIRES: is_wanted().
  void launched(Device& device, StreamHandle stream) {
    precondition(wanted_);
    if (device.is_capturing(stream)) return;  // it does not run
    // A mark keeps the next call from beginning early: where no pause comes, few have one.
    const bool looks = launches_ < kLooks || launches_ % kRound < kLooks;
    ++launches_;
    Diagnostics ignored;  // then there is no pause
    is_last_ = looks && device.mark(stream, mark_, ignored);
  }

 private:
  static constexpr uint64_t kLooks = 16, kRound = 256;
  bool wanted_ = false;
  bool is_last_ = false;  ///< the mark is after the last launch
  uint64_t launches_ = 0;
  std::unique_ptr<StreamMark> mark_;
};

}  // namespace mscclc
