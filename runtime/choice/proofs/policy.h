// What the caller or the environment says of proofs.
#pragma once

#include <optional>

#include "ir/diagnostics/diagnostic.h"
#include "runtime/api/proof_policy.h"
#include "runtime/support/environment/environment.h"

namespace mscclc {

/// What was asked for, or else what MSCCLC_PROOF says. nullopt: reported (bad-variable).
[[nodiscard]] std::optional<ProofPolicy> proof_policy(std::optional<ProofPolicy> asked,
                                                      const Environment& environment,
                                                      Diagnostics& diagnostics);

}  // namespace mscclc
