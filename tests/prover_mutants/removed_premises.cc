// Which premises the prover of this program takes as met.
#include <unistd.h>

#include <cstdlib>

#include "passes/prove/model/premise.h"

namespace mscclc::proof {

std::vector<Premise> removed_premises = []() -> std::vector<Premise> {
  const char* const number = std::getenv("MSCCLC_REMOVED_PREMISE");
  if (number == nullptr) return {};
  alarm(60);  // a prover that does not end has been noticed
  return {static_cast<Premise>(std::atoi(number))};
}();

}  // namespace mscclc::proof
