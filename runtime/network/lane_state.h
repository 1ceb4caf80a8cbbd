// What lanes between machines have in common: whether a lane is open, why it is not, and how an
// order waits for the thread that sends.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>

#include "ir/diagnostics/diagnostic.h"
#include "runtime/api/lane.h"

namespace mscclc::net {

/// Reports that a lane has failed; false, for the caller to return.
bool refuse_lane(Diagnostics& diagnostics, const std::string& why);

/// Thread safety: a lane's mutex is held, except where it says otherwise.
class LaneState {
 public:
  explicit LaneState(const LanePeer& peer)
      : peer_(peer.rank), over_(peer.over), failed_(peer.failed) {}

  uint32_t peer() const { return peer_; }  ///< its rank
  /// The far end has ended in good order: it needs no more.
  bool gone() const { return gone_; }
  void leave() { gone_ = true; }
  /// Why the lane has ended; "": it has not.
  const std::string& broken() const { return broken_; }
  /// The first reason counts. False: it had ended before.
  bool break_with(const std::string& why);
  bool is_open() const { return !gone_ && broken_.empty(); }

  /// Nothing waits for this communicator any more. Needs no mutex.
  bool is_over() const { return over_ && over_(); }
  /// Waits while the lane is open and `busy()`. False: it has broken, or the wait is no longer
  /// wanted; reported.
  template <class Busy>
  [[nodiscard]] bool await_while(std::unique_lock<std::mutex>& lock, Busy busy,
                                 Diagnostics& diagnostics) {
    while (is_open() && busy()) {
      if (!await_news(lock, diagnostics)) return false;
    }
    return is_whole(diagnostics);
  }
  /// For what does not wait, but is asked again: how far it is, if it still has to wait or not.
  [[nodiscard]] FlushState state_of_flush(bool waits, Diagnostics& diagnostics) const;
  /// Until there is news. False: the wait is no longer wanted; reported.
  [[nodiscard]] bool await_news(std::unique_lock<std::mutex>& lock, Diagnostics& diagnostics);
  /// False: the lane has broken; reported.
  [[nodiscard]] bool is_whole(Diagnostics& diagnostics) const {
    return broken_.empty() || refuse_lane(diagnostics, broken_);
  }
  /// Wakes what waits, and reports to the rank if the lane has broken. `why`: broken(). REQUIRES:
  /// the mutex is not held.
  void announce(const std::string& why);

 private:
  /// False: the wait is no longer wanted; reported.
  [[nodiscard]] bool may_wait(Diagnostics& diagnostics) const;

  const uint32_t peer_;
  const std::function<bool()> over_;
  const LaneFailed failed_;
  std::condition_variable news_;
  bool gone_ = false;
  std::string broken_;
};

}  // namespace mscclc::net
