#include "runtime/api/plan.h"

#include "ir/program.h"
#include "plans/plan_json.h"

namespace mscclc {

std::shared_ptr<const Program> load_plan(std::string_view json, const std::string& name,
                                         Diagnostics& diagnostics) {
  std::optional<Program> plan = read_plan(json, name, diagnostics);
  return plan ? std::make_shared<const Program>(*std::move(plan)) : nullptr;
}

}  // namespace mscclc
