// The registry of a job, as commands look at it.
#pragma once

#include <memory>
#include <string>

#include "ir/diagnostics/diagnostic.h"
#include "runtime/api/plan_registry.h"

namespace mscclc {

/// Of `folder`: one of plans, or a library of programs; "": the library that is compiled in. Before
/// it, if the environment is followed, what MSCCLC_PLAN_PATH names. nullptr: reported.
[[nodiscard]] std::shared_ptr<PlanRegistry> open_registry(const std::string& folder,
                                                          bool follow_environment,
                                                          Diagnostics& diagnostics);

}  // namespace mscclc
