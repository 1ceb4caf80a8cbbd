// Making a communicator: device, bootstrap, what all ranks must know of each other, plans, and the
// real NCCL beside it.
#pragma once

#include <functional>
#include <memory>

#include "runtime/doors/nccl/comm/comm.h"

namespace mscclc::nccl {

/// How the ranks of a new communicator meet. Collective; nullptr: reported.
using Meet = std::function<std::unique_ptr<Bootstrap>(Diagnostics& diagnostics)>;

/// Makes what calls plans, for a communicator that is ready otherwise. Collective; nullptr without
/// an error: there are no plans.
using MakePlanCalls = std::function<std::unique_ptr<PlanCalls>(
    Communicator&, const CollectivesOptions&, Diagnostics&)>;
/// Puts another maker in the place of make_library_calls(); an empty one: there are no plans. For
/// tests.
void set_plan_calls(MakePlanCalls make);
void use_library_plans();
/// By the maker that is in place.
[[nodiscard]] std::unique_ptr<PlanCalls> make_plan_calls(Communicator& communicator,
                                                         const CollectivesOptions& options,
                                                         Diagnostics& diagnostics);

/// Collective, on a thread of its own: the device becomes current there. Fills `comm`, whose rank,
/// number of ranks, ordinal and configuration are set; its stage becomes ready or failed, unless it
/// was aborted meanwhile.
/// `made`: gets the result once calls may be made, before the communicator's callers do.
[[nodiscard]] ncclResult_t make_comm(Comm& comm, const Meet& meet,
                                     const std::function<void(ncclResult_t)>& made = {});

}  // namespace mscclc::nccl
