// What is left of a store where others of the chunk have come since: a load that reads several
// takes from each the bytes that it left, and a store that others took the place of has not been
// read.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "passes/prove/memory/history.h"
#include "passes/prove/model/extent.h"
#include "passes/prove/model/premise.h"

namespace mscclc::proof {

/// The stores of a chunk, added from the newest to the oldest.
class StoresSince {
 public:
  StoresSince(const Cuts& cuts, const History& history) : cuts_(cuts), history_(history) {}

  void add(uint32_t store) { since_.push_back(store); }

  /// Calls visit(piece) for the bytes of `read` of the next store that no store added so far may
  /// have taken the place of (lemma O4). One of the same bits that is in no order with it has not.
  /// What cannot be distinguished is left out.
  template <class Visit>
  void each_left(uint32_t store, const Extent& read, Visit&& visit) const {
    const Extent& stored = history_.record(store).extent;
    std::vector<Extent> over;
    for (const uint32_t i : since_) {
      const Extent& later = history_.record(i).extent;
      const bool touches = later.may_touch(stored) && later.may_touch(read);
      if (touches && !history_.in_no_order(store, i)) over.push_back(later);
    }
    if (premise(Premise::what_was_stored_over_is_not_read, over.empty())) return visit(read);
    const Extent& first = over.front();
    const auto of_one_way = [&](const Extent& e) { return e.way == first.way && e.turn == 0; };
    if (!stored.whole() || !read.whole() || first.whole()) return;
    if (!std::ranges::all_of(over, of_one_way)) return;
    for (uint32_t i = 0; i < cuts_.pieces(first.way); ++i) {
      if (std::ranges::find(over, i, &Extent::piece) != over.end()) continue;
      visit(Extent{.way = first.way, .piece = i, .sure = false});
    }
  }

 private:
  const Cuts& cuts_;
  const History& history_;
  std::vector<uint32_t> since_;
};

}  // namespace mscclc::proof
