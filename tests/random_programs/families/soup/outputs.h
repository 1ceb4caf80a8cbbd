// The outputs of a soup: they are filled, and what they hold in the end is promised.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/random_programs/families/soup/places.h"
#include "tests/random_programs/families/soup/shape.h"
#include "tests/random_programs/families/soup/steps.h"
#include "tests/random_programs/families/soup/text.h"

namespace mscclc::random_programs::soup {

class Outputs : public Part {
 public:
  Outputs(const Shape& shape, Dice& dice, Text& text, Places& places, Steps& steps)
      : Part(shape, dice), text_(text), places_(places), steps_(steps) {}

  void fill();
  void contract();

 private:
  /// From wherever it is.
  void gather(const RankChunk& output, const Value& wanted);
  void promise(uint32_t r, uint32_t c, const std::vector<uint32_t>& ranks);

  Text& text_;
  Places& places_;
  Steps& steps_;
};

}  // namespace mscclc::random_programs::soup
