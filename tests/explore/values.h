// What cells hold, as numbers: each is a multiset of contributions, and the same multiset has the
// same number; where the order of sums is followed, if it has the same bits, too.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "ir/program/program.h"
#include "tests/explore/forms.h"

namespace mscclc::explorer {

class Values {
 public:
  /// Cells number the values that they hold.
  static constexpr size_t kMax = 60000;

  /// 0: the empty one. REQUIRES: not full().
  uint16_t number(std::vector<Contribution> multiset, const Form& form = {}) {
    std::sort(multiset.begin(), multiset.end());
    const Value value{std::move(multiset), form};
    const auto [at, added] = numbers_.try_emplace(value, values_.size());
    if (added) values_.push_back(value);
    return static_cast<uint16_t>(at->second);
  }
  /// A result of a row function of what the caller gave and of these chunks. A cell is a row.
  uint16_t result_of(uint32_t function, uint32_t k, uint16_t arguments) {
    constexpr uint32_t kResult = kNone - 1;  // no rank
    return arguments == 0 ? 0 : number({{kResult, function, k, arguments}});
  }
  /// Whatever a cell held that was written by `writer`: its own bits, until it is written again.
  uint16_t leftover(uint32_t cell, uint16_t writer) { return number({{kNone, cell, writer, 0}}); }

  std::span<const Contribution> of(uint16_t value) const { return values_[value].first; }
  const Form& form(uint16_t value) const { return values_[value].second; }
  /// There are too many to go on.
  bool full() const { return values_.size() > kMax; }

 private:
  using Value = std::pair<std::vector<Contribution>, Form>;
  std::vector<Value> values_ = {{}};
  std::map<Value, size_t> numbers_;
};

}  // namespace mscclc::explorer
