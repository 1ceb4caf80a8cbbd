// What lies where in a soup, and where the next op may take it from or put it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/random_programs/families/soup/shape.h"

namespace mscclc::random_programs::soup {

class Places : public Part {
 public:
  Places(const Shape& shape, Dice& dice) : Part(shape, dice) {}

  /// Inputs hold what is theirs.
  void begin();
  std::string scratch();
  Value value_at(const RankChunk& place) const;
  /// A place with something in it, at a rank: of a position, and without the inputs of some ranks.
  std::optional<RankChunk> source(uint32_t rank, std::optional<uint32_t> position,
                                  const std::vector<uint32_t>& without);
  /// Any other place that holds a value.
  std::optional<RankChunk> holder(const Value& value, const RankChunk& but);
  RankChunk target(uint32_t rank, uint32_t position);
  /// In place the same must be there as out of place: what is overwritten is no value any more.
  void set(const RankChunk& place, const Value& value);

  static Value added(const Value& a, const Value& b);

 private:
  std::map<RankChunk, Value> values_;
};

}  // namespace mscclc::random_programs::soup
