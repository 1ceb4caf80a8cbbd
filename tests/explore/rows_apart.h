// A program in which sums and the row functions that they are handed to are ops of their own, as
// some machines do them (RowSteps::apart in executor/lower.h).
#pragma once

#include "ir/program/program.h"

namespace mscclc {

/// REQUIRES: program.split, verify_structure().
Program rows_apart(const Program& program);

}  // namespace mscclc
