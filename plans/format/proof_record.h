// The proof of a plan as the plan records it, under `mscclc.proof`: for which target and by which
// prover, and what was proved. FORMAT.md lists its members.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ir/program/proof.h"

namespace mscclc {

struct ProofRecord {
  uint32_t prover = 0;        ///< kProverVersion of the prover that made it
  std::string target;         ///< whose limits were kept
  bool graph_replay = false;  ///< a captured launch may be replayed
  Proof proof;
};

std::string_view name(Rounding rounding);
std::string_view name(BetweenCalls between_calls);

/// The record as compact JSON.
std::string proof_text(const ProofRecord& record);

}  // namespace mscclc
