#include "runtime/network/lane_state.h"

#include <fmt/format.h>

#include "runtime/support/fixed_times.h"

namespace mscclc::net {
bool refuse_lane(Diagnostics& diagnostics, const std::string& why) {
  diagnostics.error("lane-failed", {}, why);
  return false;
}

bool LaneState::break_with(const std::string& why) {
  if (!broken_.empty()) return false;
  broken_ = why;
  return true;
}

bool LaneState::may_wait(Diagnostics& diagnostics) const {
  return !is_over() ||
         refuse_lane(
             diagnostics,
             fmt::format("rank {} takes no orders, and the communicator has failed", peer_));
}

bool LaneState::await_news(std::unique_lock<std::mutex>& lock, Diagnostics& diagnostics) {
  return news_.wait_for(lock, kAskAgain) == std::cv_status::no_timeout || may_wait(diagnostics);
}

FlushState LaneState::state_of_flush(bool waits, Diagnostics& diagnostics) const {
  if (!is_whole(diagnostics)) return FlushState::failed;
  if (!waits || gone_) return FlushState::done;
  return may_wait(diagnostics) ? FlushState::under_way : FlushState::failed;
}

void LaneState::announce(const std::string& why) {
  news_.notify_all();
  if (!why.empty() && failed_) failed_(why);
}

}  // namespace mscclc::net
