// The value that the op at hand stores: what it has loaded, added up as the op says.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <tuple>

#include "ir/program/program.h"
#include "passes/prove/memory/chunk_contents.h"
#include "passes/prove/memory/op_bytes.h"
#include "passes/prove/model/extent.h"
#include "passes/prove/model/system.h"
#include "passes/prove/model/values.h"
#include "passes/prove/processes/call_order.h"

namespace mscclc::proof {

class OpValue {
 public:
  /// All of them must outlive it.
  OpValue(const System& system, const Symbols& symbols, const CallOrder& calls,
          const OpBytes& bytes, ChunkContents& contents);

  /// Nothing has been loaded for this chunk.
  void begin() {
    has_value_ = sized_ = loads_sum_ = false;
    loads_ = 0;
  }
  /// The next load is no term of what has been loaded.
  void begin_term() { has_value_ = false; }
  const Symbol& get() const { return value_; }
  /// Loads one more: the value is their sum so far.
  void add(const Symbol& symbol);
  /// Some of it went through packets of sentinel words, which have no -0.0.
  void lose_minus_zero() { value_.plus_zero = true; }
  /// The value is the sum of these, along the tree (ir/ops/trees.h) or exact.
  void set_sum(std::span<const Symbol> terms, Summation summation);
  /// The value is result `k` of a row function of these.
  void set_result(uint32_t function, uint32_t k, std::span<const Symbol> arguments);
  /// The value goes to, or has met, rows of externals that are as long as a chunk of the output.
  void size_as_output(uint32_t rank, uint32_t chunk);
  /// The sum is rounded, and `divided` if the reduction is avg.
  void round(bool divided);
  /// Has a sum been a term of another? It was stored before, and so rounded.
  bool adds_sums() const { return adds_sums_; }
  /// A switch may add up in another order each time it is asked: a sum of its own, for all parts of
  /// a group's op together.
  void set_by_switch(uint32_t rank, const Extent& extent);
  /// The value goes through the `k`-th chunk of an operand. A chunk of the caller has its own
  /// length. What goes through chunks of different lengths loses its end for some message sizes.
  void size(uint32_t rank, const Operand& o, uint32_t k) {
    if (system_.is_callers(o.buffer) || bytes_.at_switch(rank, o)) size_by_caller(rank, o, k);
  }
  /// Is the value as long as what the op moves? Else it may end before, for some sizes. Where the
  /// op moves a chunk of the caller, what is known is as long as that one.
  bool fills(uint32_t rank) const { return sized_ || bytes_.as_limit(rank, value_.size) == 0; }

 private:
  /// A sum of some bytes by a switch: of which rank, which expression, which bytes.
  using SwitchSum = std::tuple<uint32_t, uint64_t, uint32_t, uint32_t>;

  Symbol sum_of(const Symbol& a, const Symbol& b);
  Symbol tree_of(std::span<const Symbol> terms);
  Symbol exact_of(std::span<const Symbol> terms);
  void set_size(uint64_t size);
  void size_by_caller(uint32_t rank, const Operand& o, uint32_t k);

  const System& system_;
  const Symbols& symbols_;
  const CallOrder& calls_;
  const OpBytes& bytes_;
  ChunkContents& contents_;
  Symbol value_;
  bool has_value_ = false;
  uint32_t loads_ = 0;      ///< for this chunk
  bool loads_sum_ = false;  ///< one of them is of a sum
  bool adds_sums_ = false;
  bool sized_ = false;                         ///< it moves a chunk of the caller's
  std::map<SwitchSum, uint32_t> switch_sums_;  ///< how often each was made
};

}  // namespace mscclc::proof
