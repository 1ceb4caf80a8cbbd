// A set of numbers, and a map from them, that are soon empty again: they have room for what is in
// them, not for all that could be, and forget all at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/program/program.h"
#include "ir/support/precondition.h"

namespace mscclc::proof {

class Reached {
 public:
  bool has(uint64_t number) const { return find(number) != kNone; }

  /// Where a number came among those that were added, from 0; kNone: it was not.
  uint32_t find(uint64_t number) const {
    if (size_ == 0) return kNone;
    const Slot& slot = slots_[place(number)];
    return slot.stamp == stamp_ ? slot.index : kNone;
  }

  /// The same, and adds a number that is not there.
  uint32_t add(uint64_t number) {
    if (2 * (size_ + 1) > slots_.size()) grow();
    Slot& slot = slots_[place(number)];
    if (slot.stamp != stamp_) slot = {number, stamp_, size_++};
    return slot.index;
  }
  uint32_t size() const { return size_; }

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
    uint32_t index = 0;
  };

  /// Where the number is, or would be. REQUIRES: some slot is free.
  size_t place(uint64_t number) const {
    precondition(size_ < slots_.size());
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
  uint32_t size_ = 0;
  uint32_t stamp_ = 1;
};

/// What is known of numbers. T has clear(), and what an entry has allocated serves the next one.
template <class T>
class ReachedMap {
 public:
  ReachedMap() = default;
  ReachedMap(ReachedMap&&) noexcept = default;
  ReachedMap& operator=(ReachedMap&&) noexcept = default;

  const T* find(uint64_t number) const {
    const uint32_t index = numbers_.find(number);
    return index == kNone ? nullptr : &entries_[index];
  }

  /// The entry of a number; an empty one if it has none yet. It moves when others are added.
  T& operator[](uint64_t number) {
    const uint32_t before = numbers_.size();
    const uint32_t index = numbers_.add(number);
    if (index == entries_.size()) return entries_.emplace_back();
    if (index == before) entries_[index].clear();
    return entries_[index];
  }

  void clear() {
    if (numbers_.size() > kKept) entries_ = std::vector<T>();
    numbers_.clear();
  }

 private:
  static constexpr size_t kKept = 256;

  Reached numbers_;
  std::vector<T> entries_;  ///< in the order in which numbers came; more than there are numbers
};

}  // namespace mscclc::proof
