#include "runtime/network/verbs/lane_orders.h"

#include <algorithm>

#include "executor/shared_atomics.h"

namespace mscclc::verbs {

uint64_t LaneOrders::first_pending() const {
  uint64_t first = next();
  if (!waiting_.empty()) first = waiting_.front().work.number;
  for (const SendQueue& queue : queues_.all()) {
    if (!queue.is_empty()) first = std::min(first, queue.first());
  }
  return first;
}

void LaneOrders::add(Work work, size_t queue, bool in_place) {
  work.number = ++orders_;
  if (in_place) latest_read_ = work.number;
  waiting_.push_back({work, queue});
}

/// A signal follows what the other queue pairs have been given.
bool LaneOrders::may_push(const Waiting& next) const {
  const std::deque<SendQueue>& queues = queues_.all();
  if (!queues[next.queue].has_room()) return false;
  if (next.work.what == Work::What::write || next.work.what == Work::What::landing) return true;
  for (size_t i = 0; i < queues.size(); ++i) {
    if (i != next.queue && !queues[i].is_empty()) return false;
  }
  return true;
}

int LaneOrders::push() {
  int error = 0;
  while (!waiting_.empty() && may_push(waiting_.front()) && error == 0) {
    error = queues_.all()[waiting_.front().queue].add(waiting_.front().work);
    waiting_.pop_front();
  }
  for (SendQueue& queue : queues_.all()) {
    if (error == 0) error = queue.ring();
  }
  return error;
}

void LaneOrders::set_counts(bool all) {
  const uint64_t first = first_pending();
  while (!completions_.empty() && (all || completions_.front().number < first)) {
    store_release(completions_.front().count, completions_.front().value);
    completions_.pop_front();
  }
}

}  // namespace mscclc::verbs
