// Things that come and go, each known by a number as long as it is there.
#pragma once

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "ir/support/precondition.h"

namespace mscclc::cost {

/// References to what is there stay good when more comes.
template <class T>
class Slots {
 public:
  /// The number that is known from now on.
  uint32_t put(T thing) {
    if (free_.empty()) {
      things_.push_back(std::move(thing));
      return static_cast<uint32_t>(things_.size() - 1);
    }
    const uint32_t number = free_.back();
    free_.pop_back();
    things_[number] = std::move(thing);
    return number;
  }
  /// REQUIRES, as for [], that it is there. Its number may be another's from now on.
  T take(uint32_t number) {
    precondition(number < things_.size());
    free_.push_back(number);
    return std::move(things_[number]);
  }
  const T& operator[](uint32_t number) const {
    precondition(number < things_.size());
    return things_[number];
  }

 private:
  std::deque<T> things_;
  std::vector<uint32_t> free_;
};

}  // namespace mscclc::cost
