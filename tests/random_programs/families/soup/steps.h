// The steps of a soup that move plain data: moves, sums, and what switches do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/random_programs/families/soup/order.h"
#include "tests/random_programs/families/soup/places.h"
#include "tests/random_programs/families/soup/shape.h"
#include "tests/random_programs/families/soup/text.h"

namespace mscclc::random_programs::soup {

/// An operand of a step: what is written down, and the place that it is.
struct Operand {
  std::string text;
  RankChunk place;
};
inline Operand near(const RankChunk& place) { return {place.name, place}; }

class Steps : public Part {
 public:
  Steps(const Shape& shape, Dice& dice, Text& text, Order& order, Places& places)
      : Part(shape, dice), text_(text), order_(order), places_(places) {}

  void move(uint32_t p);
  void sum(uint32_t p);
  void at_switch(uint32_t p);

  /// One op: sources are known, destinations get the value.
  void run(uint32_t p, const std::string& name, const std::vector<Operand>& dsts,
           const std::vector<Operand>& srcs, const std::vector<RankChunk>& writes,
           const std::vector<RankChunk>& reads, const Value& value, bool whole = false);
  /// A place of another rank, over a channel of the process.
  Operand far(uint32_t p, const RankChunk& place, bool port = false);
  uint32_t other_rank(uint32_t rank) { return (rank + 1 + any(shape_.ranks - 1)) % shape_.ranks; }

 private:
  /// A port's put: the far end hears of it by the port's signal, this one by a flush.
  void by_port(uint32_t p, const RankChunk& from, const RankChunk& to, const Value& value);

  Text& text_;
  Order& order_;
  Places& places_;
};

}  // namespace mscclc::random_programs::soup
