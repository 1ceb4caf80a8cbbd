// What chunks hold, as symbols: which contributions are in it, each how often, and in what order
// they were added up.
//
// A multiset of contributions is their number, and the sum (modulo 2^128) of random 128-bit
// numbers, one for each (rank, input chunk, call). They are drawn anew in every process, so no plan
// can be prepared for them. Lemma V1 of docs/design/lemmas.md says how sure that is; without the
// number it would not be: what is added 2^128 times vanishes from the sum.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "passes/prove/model/extent.h"
#include "passes/prove/model/symmetry.h"

namespace mscclc::proof {

class ValueTrace;

struct Symbol {
  uint64_t low = 0, high = 0;  ///< which contributions; by `low` sums are filed
  uint64_t terms = 1;          ///< how many; 2^64 - 1: that many or more, or not known
  /// The expression that made it: what is added to what, either side first, and what is rounded
  /// when.
  uint64_t order = 0;
  uint64_t shape = 0;         ///< the same without its roundings, of ranks' contributions
  uint64_t size = 0;          ///< size class of the chunks it has been through, 0 if of none yet
  uint32_t id = 0xffffffffu;  ///< in TurnedSymbols; none: turning changes nothing
  uint32_t turn = 0;          ///< which of the images of `id` it is
  uint64_t round = 0;         ///< in a unit of scratch: the round that put it there, and its piece
  bool plus_zero = false;     ///< where it was -0.0, it may be +0.0 now
  /// Is it known which contributions these are?
  bool known() const { return terms != ~uint64_t{0}; }
  bool same_contributions(const Symbol& o) const {
    return low == o.low && high == o.high && terms == o.terms;
  }
  bool operator==(const Symbol& o) const {
    return same_contributions(o) && order == o.order && shape == o.shape && size == o.size &&
           round == o.round && plus_zero == o.plus_zero;
  }
  /// The expression alone, wherever it is kept.
  Symbol plain() const {
    Symbol symbol = *this;
    symbol.size = symbol.round = 0;
    symbol.plus_zero = false;
    return symbol;
  }
};

/// So many terms of two sums together, where 2^64 - 1 stands for that many or more.
inline uint64_t added_terms(uint64_t a, uint64_t b) { return a + b < a ? ~uint64_t{0} : a + b; }
/// Stands for the bits of a value: equal for equal symbols, and only for these; 0 if it is not
/// known (lemma O7). `call`: the one that has stored it.
uint64_t bits_of(const Symbol& symbol, uint64_t call);

/// The random numbers that symbols stand for.
class Symbols {
 public:
  Symbols();
  /// Input chunk `chunk` of `rank` in call `call`; of no size yet.
  Symbol contribution(uint32_t rank, uint32_t chunk, uint64_t call) const;
  /// What is in memory that has not been written, or of which nothing is known. A sum that it is in
  /// is not known either.
  Symbol unknown(uint64_t which) const;
  /// `a` and `b` in one sum: the same bits, whichever comes first. REQUIRES: of one size.
  Symbol add(const Symbol& a, const Symbol& b) const;
  /// The exact sum of all terms: the same bits in whatever order they come. Of two it is add().
  /// REQUIRES: one term or more, of one size.
  Symbol exact(std::span<const Symbol> terms) const;
  /// The sum, rounded to the data type, and +0.0 where it is -0.0; `divided` by the number of
  /// contributions, if the call's reduction is avg.
  Symbol rounded(const Symbol& sum, bool divided) const;
  /// Result `k` of a row function of these: equal for equal arguments, and only for these (lemma
  /// V2). REQUIRES: one argument or more.
  Symbol applied(uint32_t function, uint32_t k, std::span<const Symbol> arguments) const;
  /// What the caller gave in an external: which, of whom, and for which rows. Of whom is in `high`
  /// alone, of this and of results that are made of it.
  Symbol external(uint32_t external, uint32_t owner, uint32_t rows, uint64_t call) const;
  /// The same contributions, made by another expression: `symbol` and what has become of it.
  Symbol changed(const Symbol& symbol, uint64_t how) const;
  /// `shape` of the contribution of a rank, and of two values in one sum.
  uint64_t shape_of(uint32_t rank) const { return mix(keys_[0], uint64_t{rank} ^ keys_[2]); }
  uint64_t joined(uint64_t a, uint64_t b) const { return mix(std::min(a, b), std::max(a, b)); }
  /// Of a set of values in one exact sum. REQUIRES: one value or more.
  uint64_t together(std::vector<uint64_t> values) const;

 private:
  static uint64_t mix(uint64_t a, uint64_t b) {
    uint64_t x = a * 0x9e3779b97f4a7c15u + b;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
  }
  uint64_t keys_[4];
};

inline Symbol Symbols::contribution(uint32_t rank, uint32_t chunk, uint64_t call) const {
  const uint64_t place = uint64_t{rank} << 32 | chunk;
  const uint64_t low = mix(mix(keys_[0], place), call ^ keys_[1]);
  const uint64_t high = mix(mix(keys_[2], place), call ^ keys_[3]);
  return {.low = low, .high = high, .order = mix(low, high), .shape = shape_of(rank)};
}

/// Symbols of one run of a plan that is its own image when ranks are renumbered (symmetry.h). What
/// becomes of a symbol when all ranks of its contributions are renumbered cannot be seen from its
/// numbers. So all its images are kept: made once for each expression, however often that is
/// computed.
class TurnedSymbols {
 public:
  /// What symbols are made of goes into `trace`, if there is one.
  TurnedSymbols(const Symbols& symbols, const Symmetry& symmetry, ValueTrace* trace = nullptr)
      : symbols_(symbols), symmetry_(symmetry), trace_(trace) {}

  /// As those of Symbols. REQUIRES: `rank` is one that stands for others.
  Symbol contribution(uint32_t rank, uint32_t chunk, uint64_t call);
  Symbol add(const Symbol& a, const Symbol& b);
  Symbol exact(std::span<const Symbol> terms);
  Symbol rounded(const Symbol& sum, bool divided);
  Symbol applied(uint32_t function, uint32_t k, std::span<const Symbol> arguments);
  Symbol external(uint32_t external, uint32_t owner, uint32_t rows, uint64_t call);
  /// What is in chunk `chunk` (of System) before it has been written.
  Symbol unwritten(uint64_t chunk);
  /// The symbol when ranks have turned `turns` times, at most as often as brings them back.
  Symbol turned(const Symbol& symbol, uint32_t turns) const {
    return turns == 0 || symmetry_.trivial() ? symbol : image(symbol, turns);
  }

 private:
  struct Numbers {
    uint64_t low, high, order, shape;
  };
  struct Hash {
    size_t operator()(const Symbol& s) const { return s.low ^ s.order; }
  };
  /// `symbol`, of which make(k) is what k turns give.
  template <class Make>
  Symbol with_images(Symbol symbol, Make&& make);
  /// What some turns make of it.
  Symbol image(const Symbol& symbol, uint32_t turns) const;
  // Those of Symbols, noted in the trace.
  Symbol make_contribution(uint32_t rank, uint32_t chunk, uint64_t call) const;
  Symbol make_sum(const Symbol& a, const Symbol& b) const;
  Symbol make_exact(std::span<const Symbol> terms) const;
  Symbol make_rounded(const Symbol& sum, bool divided) const;
  Symbol make_unwritten(uint64_t which) const;

  const Symbols& symbols_;
  const Symmetry& symmetry_;
  ValueTrace* const trace_;
  std::vector<std::vector<Numbers>> images_;        ///< by id and turn
  std::unordered_map<Symbol, uint32_t, Hash> ids_;  ///< of unturned symbols, without sizes
};

/// The value of one chunk: one symbol for all of it, or one for every piece of a way of cutting it.
class ChunkValue {
 public:
  explicit ChunkValue(const Symbol& symbol = {}) : whole_(symbol) {}
  /// The symbol of these bytes; `mixed` if they do not all hold the same contributions. Pieces that
  /// hold them added up in different orders are a sum whose order is that of no other chunk.
  Symbol read(const Extent& extent, const Symbol& mixed) const;
  /// Is there a piece of which pred(symbol) holds?
  template <class Pred>
  bool any(Pred&& pred) const {
    return way_ == 0 ? pred(whole_) : std::any_of(pieces_.begin(), pieces_.end(), pred);
  }
  struct Piece {
    Extent extent;
    Symbol symbol;
  };
  /// The first piece that holds other contributions than `wanted`, or with `minus_zero` may have
  /// lost -0.0, if one does.
  std::optional<Piece> piece_without(const Symbol& wanted, bool minus_zero) const;
  /// `pieces`: of extent.way.
  void write(const Extent& extent, uint32_t pieces, const Symbol& symbol, const Symbol& mixed);

 private:
  Symbol whole_;  ///< if way_ is 0
  uint32_t way_ = 0;
  std::vector<Symbol> pieces_;
};

}  // namespace mscclc::proof
