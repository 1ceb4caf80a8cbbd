// A set of numbers that is soon empty again: it has room for what is in it, not for all that could
// be, and forgets all at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mscclc::proof {

class Reached {
 public:
  bool has(uint64_t number) const { return size_ != 0 && slots_[place(number)].stamp == stamp_; }

  void add(uint64_t number) {
    if (2 * (size_ + 1) > slots_.size()) grow();
    Slot& slot = slots_[place(number)];
    if (slot.stamp == stamp_) return;
    slot = {number, stamp_};
    ++size_;
  }

  void clear() {
    if (size_ == 0) return;
    size_ = 0;
    if (++stamp_ == 0 || slots_.size() > kKept) *this = Reached();
  }

 private:
  static constexpr size_t kFirst = 16, kKept = 4096;
  struct Slot {
    uint64_t number = 0;
    uint32_t stamp = 0;  ///< the set's: the number is in it
  };

  /// Where the number is, or would be. REQUIRES: some slot is free.
  size_t place(uint64_t number) const {
    const size_t mask = slots_.size() - 1;
    size_t at = (number * 0x9e3779b97f4a7c15u >> 32) & mask;
    while (slots_[at].stamp == stamp_ && slots_[at].number != number) at = (at + 1) & mask;
    return at;
  }

  void grow() {
    std::vector<Slot> old(slots_.empty() ? kFirst : 2 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.stamp == stamp_) slots_[place(slot.number)] = slot;
    }
  }

  std::vector<Slot> slots_;  ///< a power of two
  size_t size_ = 0;
  uint32_t stamp_ = 1;
};

}  // namespace mscclc::proof
