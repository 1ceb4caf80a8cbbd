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
  /// It serves the call's own contract, if elements are added up in this type instead.
  std::optional<Dtype> in = {};
};

/// What a call would get; nullopt: no plan.
using PickPlan = std::function<std::optional<ServingPlan>(const LibraryCall& call)>;

/// The plan that is picked under the call's contract if it adds up in the usual type; else under
/// the strongest weaker one under which there is a plan. None where the order does not matter.
/// REQUIRES: `pick` has none for the call itself.
std::optional<ServingPlan> nearest_plan(const LibraryCall& call, const PickPlan& pick);

/// Two notes of it: what the call's contract means, and which plan is the nearest; or none.
std::vector<Note> nearest_plan_notes(const LibraryCall& call, const PickPlan& pick);

/// "the nearest plan is 'x', which keeps 'ranks'", or "… of sums in f32"
std::string nearest_plan_text(const ServingPlan& plan);

}  // namespace mscclc
