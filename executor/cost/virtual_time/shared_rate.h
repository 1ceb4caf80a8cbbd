// A rate that several transfers share: a link, a memory. Each gets the same part of it, so one that
// begins slows the others down, and one that ends lets them go faster.
//
// All that a transfer has moved since it began is what one has moved since then, so one sum and a
// heap of the transfers' ends on its scale do, however many there are.
#pragma once

#include <algorithm>
#include <cstdint>
#include <queue>
#include <vector>

#include "ir/support/precondition.h"

namespace mscclc::cost {

class SharedRate {
 public:
  /// Bytes a nanosecond.
  explicit SharedRate(double rate = 1) : rate_(rate) {}

  void add(uint32_t transfer, double bytes, double now) {
    move_to(now);
    ends_.push({moved_ + bytes, transfer});
    left_ += bytes;
  }
  bool idle() const { return ends_.empty(); }
  /// When the next transfer ends, if none comes or goes. REQUIRES: !idle().
  double next_end() const {
    precondition(!idle());
    const double left = ends_.top().at - moved_;
    return at_ + (left > 0 ? left : 0) * static_cast<double>(ends_.size()) / rate_;
  }
  /// When all of them have ended, if none comes.
  double last_end(double now) const {
    return ends_.empty() ? now : std::max(now, at_ + left_ / rate_);
  }
  /// Takes out the transfer that ends now, the earliest. REQUIRES: now == next_end().
  uint32_t pop(double now) {
    precondition(!idle());
    move_to(now);
    const End end = ends_.top();
    ends_.pop();
    moved_ = end.at;  // no rest of rounding
    if (ends_.empty()) left_ = 0;
    return end.transfer;
  }

 private:
  struct End {
    double at;
    uint32_t transfer;
    bool operator>(const End& other) const {
      return at != other.at ? at > other.at : transfer > other.transfer;
    }
  };
  void move_to(double now) {
    if (!ends_.empty()) {
      moved_ += (now - at_) * rate_ / static_cast<double>(ends_.size());
      left_ -= (now - at_) * rate_;
    }
    at_ = now;
  }

  double rate_;
  double moved_ = 0;  ///< by each transfer that has been there from the beginning
  double left_ = 0;   ///< bytes of all of them
  double at_ = 0;     ///< when that was so
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
};

}  // namespace mscclc::cost
