// What cells hold, as numbers: each is a multiset of contributions, and the same multiset has the
// same number.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "ir/program/program.h"

namespace mscclc::explorer {

/// A contribution: an input chunk of a rank in a call, and the byte of it that a cell begins with.
using Contribution = std::array<uint32_t, 4>;

class Values {
 public:
  /// Cells number the values that they hold.
  static constexpr size_t kMost = 60000;

  /// 0: the empty one. REQUIRES: not full().
  uint16_t number(std::vector<Contribution> multiset) {
    std::sort(multiset.begin(), multiset.end());
    const auto [at, added] = numbers_.try_emplace(multiset, values_.size());
    if (added) values_.push_back(std::move(multiset));
    return static_cast<uint16_t>(at->second);
  }
  /// A result of a row function of what the caller gave and of these chunks. A cell is a row.
  uint16_t result_of(uint32_t function, uint32_t k, uint16_t arguments) {
    constexpr uint32_t kResult = kNone - 1;  // no rank
    return arguments == 0 ? 0 : number({{kResult, function, k, arguments}});
  }
  /// Whatever a cell held that was written by `writer`: its own bits, until it is written again.
  uint16_t leftover(uint32_t cell, uint16_t writer) { return number({{kNone, cell, writer, 0}}); }

  std::span<const Contribution> of(uint16_t value) const { return values_[value]; }
  /// There are too many to go on.
  bool full() const { return values_.size() > kMost; }

 private:
  std::vector<std::vector<Contribution>> values_ = {{}};
  std::map<std::vector<Contribution>, size_t> numbers_;
};

}  // namespace mscclc::explorer
