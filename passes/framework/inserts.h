// Ops to be put between those of a list: collected at slots, merged in one go. Each op has several
// slots before and after it; ops of one slot keep the order in which they were added.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "ir/program/program.h"

namespace mscclc {

class Inserts {
 public:
  /// In the order of the list; the op itself stands between `before` and `after`.
  enum Slot : uint32_t {
    before_loop,  ///< in front of the pipeline that the op begins
    head,         ///< first in the body that the op begins
    before,
    after,
    after_loop,  ///< after the pipeline that the op ends
  };

  void clear() { list_.clear(); }
  bool empty() const { return list_.empty(); }
  void add(uint32_t at, Slot slot, const Op& op) { list_.push_back({at * kSlots + slot, op}); }

  /// Merges into `ops`. `moved` (may be null) receives the new index of each old op.
  void merge(std::vector<Op>& ops, std::vector<uint32_t>* moved = nullptr) {
    std::stable_sort(list_.begin(), list_.end(),
                     [](const Insert& a, const Insert& b) { return a.slot < b.slot; });
    std::vector<Op> merged;
    merged.reserve(ops.size() + list_.size());
    if (moved) moved->resize(ops.size());
    size_t next = 0;
    for (uint32_t i = 0; i < ops.size(); ++i) {
      while (next < list_.size() && list_[next].slot < i * kSlots + after) {
        merged.push_back(list_[next++].op);
      }
      if (moved) (*moved)[i] = static_cast<uint32_t>(merged.size());
      merged.push_back(ops[i]);
    }
    for (; next < list_.size(); ++next) merged.push_back(list_[next].op);
    ops.swap(merged);
  }

 private:
  static constexpr uint32_t kSlots = after_loop + 1;
  struct Insert {
    uint32_t slot;
    Op op;
  };
  std::vector<Insert> list_;
};

}  // namespace mscclc
