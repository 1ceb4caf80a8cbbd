// Adding up as a tree (ir/ops/trees.h) what comes one by one: like a binary counter, whose digits
// are the results of 2^k sources each. Those that there are lie one after the other, the largest
// first.
#pragma once

#include <cstdint>

#include "executor/interpreter/layout.h"
#include "ir/ops/trees.h"

namespace mscclc::device {

/// Results of parts, at most: a digit each, and a source that the next one goes with.
inline constexpr uint32_t kMaxTreeParts = 7;
static_assert(kMaxTreeSources >> kMaxTreeParts == 1);

class TreeWalk {
 public:
  /// The next source. start(i): result i begins with it; add(i): it goes to result i, which is of
  /// the source before it; merge(i): result i + 1 goes to result i.
  template <class Start, class Add, class Merge>
  MSCCLC_HD void take(Start start, Add add, Merge merge) {
    if ((taken_ & 1) == 0) {
      start(parts_++);
    } else {
      add(parts_ - 1);
    }
    for (uint32_t carry = taken_; (carry & 3) == 3; carry >>= 1) join(merge);
    ++taken_;
  }
  /// After the last source: makes result 0 that of all.
  template <class Merge>
  MSCCLC_HD void finish(Merge merge) {
    while (parts_ > 1) join(merge);
  }

 private:
  template <class Merge>
  MSCCLC_HD void join(Merge merge) {
    --parts_;
    merge(parts_ - 1);
  }

  uint32_t taken_ = 0, parts_ = 0;
};

}  // namespace mscclc::device
