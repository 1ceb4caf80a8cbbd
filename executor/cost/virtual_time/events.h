// The clock of a simulation in virtual time (timeline.h), and the events that are to come.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

namespace mscclc::cost {

inline double ns(uint64_t n) { return static_cast<double>(n); }

enum class EventKind : uint8_t {
  go_on,        ///< block: its step or wait is over
  part_over,    ///< transfer: one of what it waits for
  rate,         ///< shared: a transfer may have ended
  begun,        ///< message: the first packets come
  come,         ///< message: all packets, or a signal
  served,       ///< message: the proxy has done a request
  copy_begins,  ///< rank: its copy engine
};

/// Of two at the same time the one that was pushed first comes first.
struct Event {
  double at;
  uint64_t order : 56;
  uint64_t kind_bits : 8;
  uint32_t what, version;
  EventKind kind() const { return static_cast<EventKind>(kind_bits); }
  bool operator>(const Event& other) const {
    return at != other.at ? at > other.at : order > other.order;
  }
};
static_assert(sizeof(Event) == 24);

/// For one thread.
class Events {
 public:
  double now() const { return now_; }
  /// How many there have been, and are to come.
  uint64_t count() const { return count_; }
  bool empty() const { return events_.empty(); }
  void push(double at, EventKind kind, uint32_t what, uint32_t version = 0) {
    events_.push({at, count_++, static_cast<uint64_t>(kind), what, version});
  }
  /// The next one: its time is now. REQUIRES: there is one.
  Event next() {
    const Event event = events_.top();
    events_.pop();
    now_ = event.at;
    return event;
  }

 private:
  double now_ = 0;
  uint64_t count_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
};

}  // namespace mscclc::cost
