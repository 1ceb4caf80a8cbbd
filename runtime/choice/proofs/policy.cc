#include "runtime/choice/proofs/policy.h"

namespace mscclc {

std::optional<ProofPolicy> proof_policy(std::optional<ProofPolicy> asked,
                                        const Environment& environment, Diagnostics& diagnostics) {
  if (asked) return asked;
  const auto said = environment.text(Variable::MSCCLC_PROOF, diagnostics);
  if (!said) return std::nullopt;
  return *said == "skip" ? ProofPolicy::skip : ProofPolicy::require;
}

}  // namespace mscclc
