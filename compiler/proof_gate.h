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

/// Can a plan of which `proof` is proved keep what its program promises of its sums (`order:`)? Not
/// where they are rounded on the way in every type that `select` lists. False: reported.
[[nodiscard]] bool can_keep_order(const Program& program, const Proof& proof,
                                  Diagnostics& diagnostics);

}  // namespace mscclc
