// The plan of a provider that would serve a request under another contract about the bits of sums.
#pragma once

#include "plans/format/nearest_plan.h"
#include "runtime/api/plan_provider.h"

namespace mscclc {

/// What was picked for a call, as errors speak of it. nullptr: nullopt.
inline std::optional<ServingPlan> serving_plan(const PickedPlan* picked, const LibraryCall& call) {
  if (picked == nullptr) return std::nullopt;
  // Without a proof it is known to keep what it was picked under.
  return ServingPlan{picked->name,
                     picked->proof ? strongest_order(*picked->proof, call) : call.order};
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
