// The prover: is a plan right for every schedule, message size and number of calls in a row?
//
// It runs the plan once with symbols instead of data (run.h) and decides from what every process
// knows of the others. docs/verification.md has the model, the rules and the argument.
#pragma once

#include "ir/diagnostic.h"
#include "ir/program.h"

namespace mscclc {

/// What is proved of a plan; written into it, so that a registry can rely on it.
struct Proof {
  bool proved = false;
  bool deterministic = false;  ///< a sum is made in one order, whatever rank keeps it
  bool out_of_place = false;   ///< right where the caller's buffers are apart
  bool in_place = false;       ///< right where they coincide
  bool keeps_input = false;    ///< the caller's input is left as it was
  bool synchronizes = false;   ///< no rank leaves a call before all are in it
};

/// Version of the rules by which plans are accepted.
inline constexpr uint32_t kProverVersion = 1;

struct ProveOptions {
  /// In plans of so many ops and more, look whether some ranks stand for all (symmetry.h). Smaller
  /// ones are proved rank by rank: that costs little, and a mistake is told of the rank that a
  /// reader meets first.
  uint64_t symmetry_from = 20000;
};

/// Proves a plan, or reports what is wrong with it, or what could not be decided, as errors.
/// REQUIRES: program.split, and its structure is in order.
Proof prove(const Program& program, Diagnostics& diagnostics, const ProveOptions& options = {});

}  // namespace mscclc
