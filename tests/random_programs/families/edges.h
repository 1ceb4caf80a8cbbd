// Small changes of a random program at the edges of what the prover's rules allow: a credit more or
// less, a unit less, a wait that is missing, ops that change places, a body that runs a round late.
#pragma once

#include "tests/random_programs/families/sketch.h"

namespace mscclc::random_programs {

/// Changes one thing, on one rank or on all alike, and notes what in Sketch::edges. A change that
/// the program has no place for leaves it as it is.
void cross_edge(Sketch& sketch, Dice& dice);

}  // namespace mscclc::random_programs
