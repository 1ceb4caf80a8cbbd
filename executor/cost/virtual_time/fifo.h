// First in, first out. One that is empty has no memory, as a large simulation has a million of
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "ir/support/precondition.h"

namespace mscclc::cost {

template <class T>
class Fifo {
 public:
  bool empty() const { return first_ == things_.size(); }
  void push(T thing) { things_.push_back(std::move(thing)); }
  /// REQUIRES: not empty. As long as nothing is pushed or taken.
  T& front() {
    precondition(!empty());
    return things_[first_];
  }
  /// REQUIRES: not empty.
  T take() {
    precondition(!empty());
    T thing = std::move(things_[first_++]);
    if (2 * first_ >= things_.size()) {  // the room is used again
      things_.erase(things_.begin(), things_.begin() + static_cast<ptrdiff_t>(first_));
      first_ = 0;
    }
    return thing;
  }
  auto begin() { return things_.begin() + first_; }
  auto end() { return things_.end(); }

 private:
  std::vector<T> things_;
  uint32_t first_ = 0;  ///< of those that have not been taken
};

}  // namespace mscclc::cost
