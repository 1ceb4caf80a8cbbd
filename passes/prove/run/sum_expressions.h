// What the sums of a plan are, as text (docs/bits.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mscclc {

/// One way to add up. "xr" is what rank r contributes, sums in square brackets are rounded; where
/// both sides of a plus may change places, the longer one comes first, then the one of lower ranks.
struct SumExpression {
  std::string text;     ///< long ones are cut off, and end in a hash of all of it
  uint64_t chunks = 0;  ///< output chunks that have it
};

/// All sums of a plan.
struct SumExpressions {
  /// Those that differ. One for all chunks that add up alike, but begin at ranks of their own:
  /// "x(o) + x(o+1)".
  std::vector<SumExpression> all;
  std::string owner;  ///< what `o` is; "": there is none
  /// Equal if every element is the same expression in both plans, in messages that all their chunks
  /// cut evenly. "": that cannot be said, as some chunks hold pieces that are added up differently.
  std::string digest;

  /// Line by line, up to a few; each begins with `indent`. "": there are no sums.
  std::string text(const std::string& indent) const;
  /// Short, and equal for equal digests alone: the one expression, or how many and the digest. "":
  /// there are no sums, or no digest.
  std::string name() const;

 private:
  std::string shares(const std::string& indent) const;
};

}  // namespace mscclc
