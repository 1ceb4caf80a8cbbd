// The clock of a simulation in virtual time (timeline.h), and the events that are to come.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/support/precondition.h"

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

/// Of two at the same time the one that was announced first comes first.
struct Event {
  double at;
  uint64_t order_and_kind;  ///< the kind in the last byte
  uint32_t what, version;
  EventKind kind() const { return static_cast<EventKind>(order_and_kind & 0xff); }
  bool operator<(const Event& other) const {
    return at != other.at ? at < other.at : order_and_kind < other.order_and_kind;
  }
};
static_assert(sizeof(Event) == 24);

/// A heap in which each event has four that come later: a large one is half as deep as with two,
/// and those four lie side by side. For one thread.
class Events {
 public:
  double now() const { return now_; }
  /// How many have been announced.
  uint64_t count() const { return count_; }
  bool empty() const { return heap_.empty(); }
  void push(double at, EventKind kind, uint32_t what, uint32_t version = 0) {
    push_announced(at, announce(), kind, what, version);
  }
  /// The number of an event that is pushed later, if that is before its turn has come: so that of
  /// those that come one after the other only the first must be here.
  uint64_t announce() { return count_++; }
  void push_announced(double at, uint64_t announced, EventKind kind, uint32_t what,
                      uint32_t version = 0) {
    const Event event{at, announced << 8 | static_cast<uint64_t>(kind), what, version};
    heap_.push_back(event);
    size_t i = heap_.size() - 1;
    for (; i > 0 && event < heap_[(i - 1) / kWays]; i = (i - 1) / kWays) {
      heap_[i] = heap_[(i - 1) / kWays];
    }
    heap_[i] = event;
  }
  /// The next one: its time is now. REQUIRES: there is one.
  Event next() {
    precondition(!heap_.empty());
    const Event event = heap_.front(), last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) sink(last);
    now_ = event.at;
    return event;
  }

 private:
  static constexpr size_t kWays = 4;

  /// Puts an event where the first one was, and then as far down as it belongs.
  void sink(const Event& event) {
    const size_t size = heap_.size();
    size_t i = 0;
    for (size_t child = 1; child < size; child = kWays * i + 1) {
      const auto begin = heap_.begin() + static_cast<ptrdiff_t>(child);
      const auto end = heap_.begin() + static_cast<ptrdiff_t>(std::min(child + kWays, size));
      const auto first = std::min_element(begin, end);
      if (!(*first < event)) break;
      heap_[i] = *first;
      i = static_cast<size_t>(first - heap_.begin());
    }
    heap_[i] = event;
  }

  double now_ = 0;
  uint64_t count_ = 0;
  std::vector<Event> heap_;
};

}  // namespace mscclc::cost
