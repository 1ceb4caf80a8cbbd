// Junk: what is put into a slot is the same in every call, except for the flags of the packets.
#include "tests/random_programs/families/families.h"
#include "tests/random_programs/families/repeats.h"

namespace mscclc::random_programs {

Sketch make_junk(Dice& dice) {
  return Repeats(
             dice,
             {.family = "junk", .sent = Repeats::Sent::junk, .ports = dice.below(4) == 0 ? 1u : 0u})
      .make();
}

}  // namespace mscclc::random_programs
