// Of a call that no plan serves under its contract about the bits of sums (docs/bits.md): the plan
// that would serve it under another one.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ir/diagnostics/diagnostic.h"
#include "plans/format/library_call.h"

namespace mscclc {

/// A plan, and the strongest contract that its sums are known to keep in the call.
struct ServingPlan {
  std::string name;
  SumOrder keeps = SumOrder::any;
  SumOrder under = SumOrder::any;  ///< the contract that it is picked under
};

/// What a call would get; nullopt: no plan.
using PickPlan = std::function<std::optional<ServingPlan>(const LibraryCall& call)>;

/// The plan that is picked under the strongest of `replicated` and `any` under which there is one.
/// None where the order does not matter. REQUIRES: `pick` has none for the call itself.
std::optional<ServingPlan> nearest_plan(const LibraryCall& call, const PickPlan& pick);

/// Two notes of it: what the call's contract means, and which plan is the nearest; or none.
std::vector<Note> nearest_plan_notes(const LibraryCall& call, const PickPlan& pick);

/// "the nearest plan is 'x', which keeps 'ranks'"
std::string nearest_plan_text(const ServingPlan& plan);

}  // namespace mscclc
