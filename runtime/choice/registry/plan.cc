#include "runtime/api/plan.h"

#include "runtime/choice/proofs/plan_digest.h"

namespace mscclc {

std::shared_ptr<const Program> load_plan(std::string_view json, const std::string& name,
                                         Diagnostics& diagnostics) {
  return read_shared_plan(json, name, diagnostics);
}

}  // namespace mscclc
