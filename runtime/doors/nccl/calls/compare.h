// MSCCLC_CHECK_CALLS=1: the calls of all ranks are compared before any of them begins, whether
// plans or the real NCCL would serve them. Ranks whose calls differ would otherwise wait for each
// other.
#pragma once

#include <vector>

#include "runtime/doors/nccl/calls/call.h"

namespace mscclc::nccl {

/// Collective over the ranks whose calls have collectives: these must be the same, in the same
/// order. Sends, receives and one-sided calls are those of some ranks only, and not compared.
/// REQUIRES: the communicator's mutex is held.
[[nodiscard]] ncclResult_t compare_calls(Comm& comm, const std::vector<const NcclCall*>& calls);

}  // namespace mscclc::nccl
