// The proof's gate: a plan comes through proved right, or not at all.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/diagnostics/diagnostic.h"
#include "ir/program/program.h"
#include "ir/program/proof.h"
#include "passes/registry.h"

namespace mscclc {

struct ProofGate {
  bool try_copies = false;  ///< ProveOptions::try_copies
  /// Ends the refusal: what to do for the plan all the same. Empty: nothing is said.
  std::string otherwise = {};
  /// What is proved of the program that came through last; nothing of one that is not split, which
  /// is no plan yet.
  std::optional<Proof> proof = {};
  /// If set: receives what the proof has cost, as the record of a pass "prove".
  std::vector<PassRecord>* records = nullptr;

  /// False: reported (what is wrong, then refused). REQUIRES: the program's structure is in order.
  [[nodiscard]] bool pass(const Program& program, Diagnostics& diagnostics);
};

}  // namespace mscclc
