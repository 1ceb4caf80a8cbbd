// The plan of a provider that would serve a request under another contract about the bits of sums.
#pragma once

#include "plans/format/nearest_plan.h"
#include "runtime/api/plan_provider.h"

namespace mscclc {

/// The strongest contract that what was picked for a call is known to keep, or the call's own.
inline SumOrder kept_order(const PickedPlan& picked, const LibraryCall& call) {
  if (const auto& sums = picked.sums()) return strongest_order(*sums, call);
  LibraryCall usual = call;
  usual.order = kDefaultOrder;
  return order_matters(usual) ? call.order : SumOrder::exact;  // the row of the library says so
}

/// What was picked for a call, as errors speak of it. nullptr: nullopt.
inline std::optional<ServingPlan> serving_plan(const PickedPlan* picked, const LibraryCall& call) {
  if (picked == nullptr) return std::nullopt;
  return ServingPlan{picked->name, kept_order(*picked, call)};
}

/// REQUIRES: `provider` has no plan for the request itself.
inline std::vector<Note> nearest_plan_notes(PlanProvider& provider, const PlanRequest& request) {
  return nearest_plan_notes(request.call, [&](const LibraryCall& call) {
    PlanRequest weaker = request;
    weaker.call = call;
    Diagnostics ignored;
    return serving_plan(provider.pick(weaker, nullptr, ignored).get(), call);
  });
}

}  // namespace mscclc
