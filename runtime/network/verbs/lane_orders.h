// The orders of a lane from when they are given until the device has done them: those that wait for
// room, or for others; and counts of this rank that are set when they are done.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "runtime/network/verbs/device_queues.h"
#include "runtime/network/verbs/send_queue.h"

namespace mscclc::verbs {

/// Thread safety: one thread at a time.
class LaneOrders {
 public:
  /// Orders that one put takes at most.
  static constexpr size_t kMaxBlocks = 16;

  explicit LaneOrders(DeviceQueues& queues) : queues_(queues) {}

  /// With so many orders that the device has not taken a lane takes no more.
  bool is_full() const { return waiting_.size() >= kMaxWaiting; }
  /// The same for all orders of a put.
  bool is_nearly_full() const { return waiting_.size() + kMaxBlocks >= kMaxWaiting; }
  /// So few wait that a lane that is corked may let them wait.
  bool are_few() const { return waiting_.size() < kMaxBlocks; }
  /// All orders are done.
  bool is_empty() const { return first_pending() == next(); }
  /// The number of the order that add() takes next.
  uint64_t next() const { return orders_ + 1; }
  /// That of the first order that is not done.
  uint64_t first_pending() const;

  /// `queue`: over which it goes. `in_place`: the device reads its bytes where the caller has them.
  void add(Work work, size_t queue, bool in_place);
  /// Gives the device all that it has room for. 0, or an error of the system.
  [[nodiscard]] int push();
  /// Forgets what the device has not been given.
  void drop_waiting() { waiting_.clear(); }

  /// Sets a count when the device has read all that it reads in place so far.
  void complete(uint64_t* count, uint64_t value) {
    completions_.push_back({count, value, latest_read_});
  }
  /// Sets the counts whose orders are done. `all`: nothing will be done any more, and nothing need.
  void set_counts(bool all);

 private:
  static constexpr size_t kMaxWaiting = 1024;
  struct Waiting {
    Work work;
    size_t queue;
  };
  /// A count to be set when the orders up to this one are done.
  struct Completion {
    uint64_t* count;
    uint64_t value;
    uint64_t number;
  };

  bool may_push(const Waiting& next) const;

  DeviceQueues& queues_;
  uint64_t orders_ = 0;       ///< so many were given
  uint64_t latest_read_ = 0;  ///< the latest whose bytes the device reads where they lie
  std::deque<Waiting> waiting_;
  std::deque<Completion> completions_;
};

}  // namespace mscclc::verbs
