// Whether plans must be proved before they are loaded.
#pragma once

#include <cstdint>

namespace mscclc {

enum class ProofPolicy : uint8_t {
  require,  ///< a plan that is not known to be right is proved first; if it is not, it is refused
  skip      ///< nothing is looked at, which is said in a warning
};

}  // namespace mscclc
