// Twins: two ranks put the same packets into one slot.
#include "tests/random_programs/families/families.h"
#include "tests/random_programs/families/repeats.h"

namespace mscclc::random_programs {

Sketch make_twins(Dice& dice) { return Repeats(dice, {.family = "twins"}).make(); }

}  // namespace mscclc::random_programs
