#include "tests/helpers/plans/rehash.h"

#include "ir/diagnostics/diagnostic.h"
#include "plans/format/json/json_tape.h"

namespace mscclc::testing {

std::string rehash(std::string plan) {
  Diagnostics diagnostics;
  JsonTape tape;
  const std::string key = "\"hash\":\"";
  const size_t at = plan.rfind(key);
  if (at == std::string::npos || !tape.parse(plan, "plan.json", diagnostics)) return plan;
  const std::string hash = canonical_hash(tape);
  if (at + key.size() + hash.size() <= plan.size()) {
    plan.replace(at + key.size(), hash.size(), hash);
  }
  return plan;
}

}  // namespace mscclc::testing
