// Echoes: a port puts packets into a slot that another has put there, too.
#include "tests/random_programs/families/families.h"
#include "tests/random_programs/families/repeats.h"

namespace mscclc::random_programs {

Sketch make_echoes(Dice& dice) {
  return Repeats(dice, {.family = "echoes", .ports = 1 + dice.below(2)}).make();
}

}  // namespace mscclc::random_programs
