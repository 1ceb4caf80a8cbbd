// Joins of rows that have been made: blocks of a rank that have heard from the same ranks, each by
// packets of its own, know the same. They then hold one row.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "passes/prove/model/clocks.h"

namespace mscclc::proof {

class RowJoins {
 public:
  /// `pages`, of this layout, must outlive it.
  RowJoins(const ClockLayout& layout, PagePool& pages) : layout_(layout), pages_(pages) {}

  /// `row` learns all that others know.
  void join(Row& row, std::span<const Row> others) {
    if (others.empty()) return;
    uint64_t hash = row.number();
    for (const Row& o : others) hash = (hash ^ hash >> 29 ^ o.number()) * 0xbf58476d1ce4e5b9u;
    Made& made = made_[hash >> 32 & (kKept - 1)];
    if (!made.row.same(row) || !std::ranges::equal(made.others, others, same)) {
      made.row = row;
      made.others.assign(others.begin(), others.end());
      made.result = row;
      made.result.join(others, layout_);
      made.result.share_pages(pages_);
    }
    row = made.result;
  }

 private:
  static constexpr size_t kKept = 64;
  struct Made {
    Row row;  ///< all are held here: none can come to be another's place in memory
    std::vector<Row> others;
    Row result;
  };
  static bool same(const Row& a, const Row& b) { return a.same(b); }

  const ClockLayout layout_;
  PagePool& pages_;
  std::array<Made, kKept> made_;
};

}  // namespace mscclc::proof
