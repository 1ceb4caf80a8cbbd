// When this rank was in exchanges that all ranks take part in, by its own clock. No rank leaves one
// before all have entered it: so the marks of two ranks say how far their clocks are apart
// (tools/report/clock_offsets.h).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mscclc {

struct ClockMark {
  uint64_t number = 0;            ///< of the exchange, from 1: the same on all ranks
  int64_t entered = 0, left = 0;  ///< nanoseconds of the steady clock
};

/// Keeps the first marks and the last. Thread safety: one thread at a time.
class ClockMarks {
 public:
  static constexpr size_t kFirst = 16, kLast = 48;

  static int64_t now() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  void add(int64_t entered, int64_t left) {
    const ClockMark mark{++count_, entered, left};
    if (marks_.size() < kFirst + kLast) {
      marks_.push_back(mark);
    } else {
      marks_[kFirst + (count_ - 1 - kFirst) % kLast] = mark;
    }
  }
  /// In no order.
  const std::vector<ClockMark>& all() const { return marks_; }
  uint64_t count() const { return count_; }

 private:
  std::vector<ClockMark> marks_;
  uint64_t count_ = 0;
};

}  // namespace mscclc
