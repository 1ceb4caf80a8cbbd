// The registry of a job, as commands look at it.
#pragma once

#include <memory>
#include <string>

#include "ir/diagnostics/diagnostic.h"
#include "runtime/api/plan_registry.h"

namespace mscclc {

/// What MSCCLC_PLAN_PATH names, before `folder`: one of plans, or a library of programs; "": the
/// library that is compiled in. nullptr: reported.
[[nodiscard]] std::shared_ptr<PlanRegistry> open_registry(const std::string& folder,
                                                          Diagnostics& diagnostics);

}  // namespace mscclc
