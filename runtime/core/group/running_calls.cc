#include "runtime/core/group/running_calls.h"

#include <algorithm>

#include "runtime/support/observe/leak.h"

namespace mscclc {

// Costs a launch a few loads: streams are few.
void RunningCalls::launched(StreamHandle stream) {
  if (!is_busy(stream)) busy_streams_.push_back(stream);
}

bool RunningCalls::is_busy(StreamHandle stream) const {
  return std::find(busy_streams_.begin(), busy_streams_.end(), stream) != busy_streams_.end();
}

// A handle may be that of a later stream: calls of one that was destroyed may go on. So what has
// been retired stays: only the device could say whether they have ended, and that would wait for
// streams of others, and end captures.
void RunningCalls::ended(StreamHandle stream) { std::erase(busy_streams_, stream); }

void RunningCalls::retire(std::shared_ptr<void> used) {
  if (busy_streams_.empty()) return;
  retired_.push_back(std::move(used));
  if (closed_) release();
}

void RunningCalls::close() {
  closed_ = true;
  release();
}

// While a stream of the device is captured, CUDA does not wait for the others: then all is kept.
void RunningCalls::release() {
  Diagnostics problems;
  if (retired_.empty()) return;
  const bool ended = device_->drain(problems);
  std::vector<std::shared_ptr<void>> gone;
  if (ended || closed_) gone = std::exchange(retired_, {});
  if (ended) {
    busy_streams_.clear();
  } else if (closed_) {
    leak(std::move(gone), rank_, "what a communicator has loaded or registered", problems);
  }
}

}  // namespace mscclc
