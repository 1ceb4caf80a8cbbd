// Whether plans must be proved before they are loaded.
#pragma once

#include <cstdint>
#include <optional>

#include "ir/diagnostic.h"
#include "runtime/base/environment.h"

namespace mscclc {

enum class ProofPolicy : uint8_t {
  require,  ///< a plan that is not known to be right is proved first; if it is not, it is refused
  skip      ///< nothing is looked at, which is said in a warning
};

/// What was asked for, or else what MSCCLC_PROOF says. nullopt: reported (bad-variable).
[[nodiscard]] std::optional<ProofPolicy> proof_policy(std::optional<ProofPolicy> asked,
                                                      const Environment& environment,
                                                      Diagnostics& diagnostics);

}  // namespace mscclc
