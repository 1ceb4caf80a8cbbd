#include "plans/format/nearest_plan.h"

#include <fmt/format.h>

namespace mscclc {

std::optional<ServingPlan> nearest_plan(const LibraryCall& call, const PickPlan& pick) {
  if (!order_matters(call)) return std::nullopt;
  for (const SumOrder order : {SumOrder::replicated, SumOrder::any}) {
    if (order == call.order) continue;
    LibraryCall weaker = call;
    weaker.order = order;
    std::optional<ServingPlan> plan = pick(weaker);
    if (!plan) continue;
    plan->under = order;
    return plan;
  }
  return std::nullopt;
}

std::string nearest_plan_text(const ServingPlan& plan) {
  return fmt::format("the nearest plan is '{}', which keeps '{}'", plan.name, name(plan.keeps));
}

std::vector<Note> nearest_plan_notes(const LibraryCall& call, const PickPlan& pick) {
  const std::optional<ServingPlan> plan = nearest_plan(call, pick);
  if (!plan) return {};
  const std::string under =
      plan->keeps == plan->under ? "that" : fmt::format("'{}'", name(plan->under));
  return {
      {fmt::format("'{}' means: {}", name(call.order), summary(call.order))},
      {fmt::format("{}; under {} it would serve the call (MSCCLC_ORDER, or the call's own order)",
                   nearest_plan_text(*plan), under)}};
}

}  // namespace mscclc
