// What plans of a set must keep so that a few sequences of their calls stand for all (lemmas T1 and
// T3), whatever is in them: how they share channels, scratch and the count of calls.
#pragma once

#include <span>

#include "ir/diagnostics/diagnostic.h"
#include "passes/prove/model/shared_plan.h"
#include "passes/prove/model/system.h"

namespace mscclc::proof {

/// False, and an error, if they do not. `system` is of all `plans`.
[[nodiscard]] bool may_share(const System& system, std::span<const SharedPlan> plans,
                             Diagnostics& diagnostics);

}  // namespace mscclc::proof
