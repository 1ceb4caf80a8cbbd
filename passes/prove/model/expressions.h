// How sums were made, as text: "x0 + x1 + x2", where xr is what rank r contributes.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/program/program.h"

namespace mscclc::proof {

/// Keyed by Symbol::order. Only runs whose results are explained keep it.
class Expressions {
 public:
  void add_input(uint64_t order, uint32_t rank) { nodes_.try_emplace(order, Node{.rank = rank}); }
  void add_sum(uint64_t order, uint64_t left, uint64_t right) {
    nodes_.try_emplace(order, Node{.kind = Kind::sum, .left = left, .right = right});
  }
  void add_exact(uint64_t order, std::vector<uint64_t> terms) {
    nodes_.try_emplace(order, Node{.kind = Kind::exact, .terms = std::move(terms)});
  }
  void add_rounded(uint64_t order, uint64_t of) {
    nodes_.try_emplace(order, Node{.kind = Kind::rounded, .left = of});
  }
  /// The expression, cut off where it is long; sums that are rounded on the way in brackets,
  /// exact ones as "exact(x0, x1, x2)". What is not known, as pieces that were added up in several
  /// ways, is "...".
  std::string text(uint64_t order) const;
  /// The whole expression, the same text for all that give the same bits because either side of a
  /// plus may come first: the longer one does, then the one of lower ranks. `first`: a rank that
  /// is called "x(o)", and those after it "x(o+1)", modulo `ranks`; kNone: they are "x0", "x1".
  std::string canonical(uint64_t order, uint32_t first, uint32_t ranks) const;
  /// Is it known how it was made?
  bool known(uint64_t order) const { return nodes_.contains(order); }

 private:
  enum class Kind : uint8_t { input, sum, exact, rounded };
  struct Node {
    Kind kind = Kind::input;
    uint32_t rank = 0;
    uint64_t left = 0, right = 0;
    std::vector<uint64_t> terms = {};
  };
  struct Names {
    uint32_t first, ranks;
  };
  /// A part of an expression, and what it is sorted by.
  struct Term {
    size_t leaves = 1;
    uint32_t lowest = 0;  ///< rank of a leaf, as it is named; kNone: unknown
    std::string text;
    bool bare = false;  ///< a sum that needs brackets to the right of a plus
  };
  Term term(uint64_t order, const Names& names) const;
  static bool before(const Term& a, const Term& b);
  static Term sum_of(Term a, Term b);
  void write(uint64_t order, bool outermost, bool grouped, std::string& text) const;

  std::unordered_map<uint64_t, Node> nodes_;
};

}  // namespace mscclc::proof
