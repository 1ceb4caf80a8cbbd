// What a plan's calls take on a machine, for profilers and tuners: docs/cost_model.md.
#include "executor/cost/choices/explain_choices.h"
#include "executor/cost/explanation.h"
#include "passes/prove/why_not_proved.h"
#include "plans/format/machines/machine.h"
#include "plans/format/plan_json.h"
#include "runtime/doors/c/errors.h"
#include "runtime/doors/c/handles.h"
#include "runtime/support/environment/environment.h"

using namespace mscclc;
using namespace mscclc::capi;

mscclc_result_t mscclc_plan_explain(const char* json, size_t bytes, uint64_t message_bytes,
                                    mscclc_dtype_t dtype, const char* machine, char** explanation) {
  return guarded([&] {
    if (explanation == nullptr) return refuse("mscclc_plan_explain", "'explanation' is NULL");
    *explanation = nullptr;
    if (json == nullptr || machine == nullptr) {
      return refuse("mscclc_plan_explain", "'json' or 'machine' is NULL");
    }
    const auto type = static_cast<int64_t>(dtype);
    if (type < 0 || type >= static_cast<int64_t>(dtype_table().size())) {
      return refuse("mscclc_plan_explain", "'dtype' is none");
    }
    Diagnostics diagnostics;
    const auto program = read_plan({json, bytes}, "plan", diagnostics);
    if (!program) return fail(diagnostics);
    const auto found = find_machine(machine, diagnostics);
    const auto order = Environment::of_process().order(diagnostics);
    if (!found || !order) return fail(diagnostics);
    const Call call = cost::call_of(*program, message_bytes, static_cast<Dtype>(type));
    auto explained = cost::explain(*program, call, *found, diagnostics, message_bytes);
    if (!explained) return fail(diagnostics);
    explained->not_proved = why_not_proved(*program, Sources());
    explain_choices(*program, call, *found, *order, *explained);
    *explanation = copy_text(explanation_json(*explained));
    return mscclc_result_t{MSCCLC_SUCCESS};
  });
}
