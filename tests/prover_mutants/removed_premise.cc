// Which premise the prover of this program takes as met.
#include <unistd.h>

#include <cstdlib>

#include "passes/prove/model/premise.h"

namespace mscclc::proof {
namespace {

const bool kRemoved = [] {
  const char* const number = std::getenv("MSCCLC_REMOVED_PREMISE");
  if (number == nullptr) return false;
  removed_premise = static_cast<Premise>(std::atoi(number));
  alarm(60);  // a prover that does not end has been noticed
  return true;
}();

}  // namespace
}  // namespace mscclc::proof
