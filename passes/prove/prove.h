// The prover: is a plan right for every schedule, message size and number of calls in a row?
//
// It runs the plan once with symbols instead of data (run.h) and decides from what every process
// knows of the others. docs/verification.md has the model, the rules and the argument.
#pragma once

#include "ir/diagnostic.h"
#include "ir/program.h"
#include "ir/proof.h"

namespace mscclc {

/// Proves a plan, or reports what is wrong with it, or what could not be decided, as errors.
/// REQUIRES: program.split, and its structure is in order.
Proof prove(const Program& program, Diagnostics& diagnostics);

}  // namespace mscclc
