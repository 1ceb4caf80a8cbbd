// Calls by the plans of this process: those of MSCCLC_PLAN_PATH, and the library that is compiled
// in.
#pragma once

#include <memory>

#include "runtime/api/communicator.h"
#include "runtime/api/plan_provider.h"
#include "runtime/doors/nccl/comm/plan_calls.h"

namespace mscclc::nccl {

/// Collective. nullptr: reported.
[[nodiscard]] std::unique_ptr<PlanCalls> make_library_calls(Communicator& communicator,
                                                            const CollectivesOptions& options,
                                                            Diagnostics& diagnostics);
/// The same by other plans.
[[nodiscard]] std::unique_ptr<PlanCalls> make_calls_by(std::shared_ptr<PlanProvider> plans,
                                                       Communicator& communicator,
                                                       const CollectivesOptions& options,
                                                       Diagnostics& diagnostics);

}  // namespace mscclc::nccl
