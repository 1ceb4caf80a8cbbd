#include "runtime/proofs/policy.h"

#include <fmt/format.h>

namespace mscclc {

std::optional<ProofPolicy> proof_policy(std::optional<ProofPolicy> asked,
                                        const Environment& environment, Diagnostics& diagnostics) {
  if (asked) return asked;
  const auto said = environment.text(Variable::MSCCLC_PROOF, diagnostics);
  if (!said) return std::nullopt;
  if (*said == "require") return ProofPolicy::require;
  if (*said == "skip") return ProofPolicy::skip;
  diagnostics.error(
      "bad-variable", {},
      fmt::format("MSCCLC_PROOF is {}; allowed is 'require' or 'skip'", mscclc::quoted(*said)));
  return std::nullopt;
}

}  // namespace mscclc
