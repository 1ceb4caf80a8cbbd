// What symbols were made of. Symbols are sums of random numbers, from which nothing can be read
// back; if results are wrong, the plan is run once more with a record of every sum, to say which
// contributions a result has and which it lacks.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "passes/prove/model/expressions.h"
#include "passes/prove/model/finding.h"
#include "passes/prove/model/values.h"

namespace mscclc::proof {

/// An input chunk of a call.
struct Contribution {
  uint32_t rank = 0, chunk = 0;
  uint64_t call = 0;  ///< as Symbols::contribution() has it
  auto operator<=>(const Contribution&) const = default;
};

class ValueTrace {
 public:
  /// The first read of a chunk that had not been written.
  struct FirstRead {
    ChunkName chunk;
    Event reader;
    uint32_t pair = 0;  ///< which operands, if the op is pairwise
  };
  /// What a symbol is made of.
  struct Content {
    std::map<Contribution, uint64_t> inputs =
        {};                              ///< how often each; a count may stop at its largest
    bool unwritten = false;              ///< what was in memory before
    std::optional<FirstRead> read = {};  ///< what has read that, if it was read
    bool unknown = false;                ///< what several pieces hold that differ, for one
    bool divided = false;                ///< all of it, once it was added up
    bool parts_divided = false;          ///< some of what was added up
    bool applied = false;                ///< a result of a row function, or what it takes
  };

  /// A result of a row function.
  struct Applied {
    uint32_t function = 0, k = 0;
    std::vector<Symbol> arguments = {};
  };

  void add_input(const Symbol& symbol, const Contribution& input);
  void add_unwritten(const Symbol& symbol);
  /// Notes a read of a chunk; only the first of each unwritten one counts.
  void note_read(const Symbol& symbol, const FirstRead& read);
  /// What a race has put there: some value, that says nothing of the plan.
  void add_raced(const Symbol& symbol);
  void add_sum(const Symbol& sum, const Symbol& a, const Symbol& b);
  /// After add_sum() of its terms, one after the other.
  void add_exact(const Symbol& sum, std::span<const Symbol> terms);
  /// `divided`: by the number of contributions, too.
  void add_rounded(const Symbol& result, const Symbol& sum, bool divided);

  void add_applied(const Symbol& result, Applied applied);
  void add_external(const Symbol& symbol);

  Content content(const Symbol& symbol) const;
  /// nullptr: it is no such result.
  const Applied* applied(const Symbol& symbol) const;
  /// How a sum was made, by its `order`.
  std::string expression(uint64_t order) const { return expressions_.text(order); }
  /// The same as text to compare (Expressions::canonical); of a result of a row function the sum
  /// that it takes.
  std::string canonical(const Symbol& symbol, uint32_t first, uint32_t ranks) const;
  /// Is some of it what a race has put there?
  bool raced(const Symbol& symbol) const;

 private:
  enum class Kind : uint8_t { input, unwritten, unknown, raced, sum, divided, applied, external };
  struct Node {
    Kind kind;
    uint32_t a = 0, b = 0;  ///< in nodes_, or of `input` the position in inputs_
    bool raced = false;
  };
  struct Key {
    uint64_t low, high;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    size_t operator()(const Key& key) const { return key.low; }
  };

  void add(const Symbol& symbol, const Node& node);
  uint32_t find(const Symbol& symbol);

  Expressions expressions_;
  std::vector<Node> nodes_;  ///< parts before what is made of them
  std::vector<Contribution> inputs_;
  std::unordered_map<uint32_t, FirstRead> reads_;  ///< by node, of those that are unwritten
  std::unordered_map<Key, uint32_t, Hash> ids_;
  std::unordered_map<Key, Applied, Hash> applied_;
};

}  // namespace mscclc::proof
