// Symmetric windows: made by the real NCCL, and known to plans, too.
#pragma once

#include "runtime/doors/nccl/calls/comm_calls.h"

namespace mscclc::nccl {

/// True if both buffers of a collective without a root lie in symmetric windows: PlanRequest has it
/// as `registered`. REQUIRES: the communicator's mutex is held.
bool lies_in_windows(const Comm& comm, const NcclCall& call);

/// Collective, if the communicator's calls register symmetric windows: plans reach those that the
/// real NCCL has made on all ranks. REQUIRES: CallsOfComm::result says whether it has here. What
/// plans cannot reach changes no result, which is returned: they serve calls there as any other.
ncclResult_t share_windows(CallsOfComm& one);

}  // namespace mscclc::nccl
