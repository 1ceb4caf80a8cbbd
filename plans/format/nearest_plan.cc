#include "plans/format/nearest_plan.h"

#include <fmt/format.h>

namespace mscclc {

std::optional<ServingPlan> nearest_plan(const LibraryCall& call, const PickPlan& pick) {
  if (!order_matters(call)) return std::nullopt;
  const Dtype usual = info(call.dtype).accumulate;
  LibraryCall other = call;
  if (call.accumulate.value_or(usual) != usual) {
    other.accumulate = usual;
    if (std::optional<ServingPlan> plan = pick(other)) {
      plan->keeps = plan->under = call.order;
      plan->in = usual;
      return plan;
    }
    other.accumulate = call.accumulate;
  }
  while (other.order != SumOrder::any) {
    other.order = static_cast<SumOrder>(static_cast<int>(other.order) - 1);
    std::optional<ServingPlan> plan = pick(other);
    if (!plan) continue;
    plan->under = other.order;
    return plan;
  }
  return std::nullopt;
}

std::string nearest_plan_text(const ServingPlan& plan) {
  return fmt::format("the nearest plan is '{}', which keeps '{}'{}", plan.name, name(plan.keeps),
                     plan.in ? fmt::format(" of sums in {}", info(*plan.in).name) : "");
}

std::vector<Note> nearest_plan_notes(const LibraryCall& call, const PickPlan& pick) {
  const std::optional<ServingPlan> plan = nearest_plan(call, pick);
  if (!plan) return {};
  const std::string under =
      plan->keeps == plan->under ? "that" : fmt::format("'{}'", name(plan->under));
  return {{fmt::format("'{}' means: {}", name(call.order), summary(call.order))},
          {nearest_plan_text(*plan) +
           (plan->in ? fmt::format("; the call adds up in {}", info(*call.accumulate).name)
                     : fmt::format("; under {} it would serve the call (MSCCLC_ORDER, or the "
                                   "call's own order)",
                                   under))}};
}

}  // namespace mscclc
