// Small plans that are right, and mutants of them, some of which still are: what judges of plans
// are compared on.
#pragma once

#include "executor/cpu/dice.h"
#include "tests/helpers/programs/test_programs.h"

namespace mscclc {

/// A plan of 2 or 3 ranks with up to three mistakes; its structure is in order.
testing::TestProgram mutant(Dice& dice);

}  // namespace mscclc
