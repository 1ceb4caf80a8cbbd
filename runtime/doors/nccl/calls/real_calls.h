// Calls that the real NCCL makes, on the communicators that it has beside ours.
#pragma once

#include <vector>

#include "runtime/doors/nccl/calls/call.h"

namespace mscclc::nccl {

/// Makes a call, or adds it to the group of the real NCCL that is open. REQUIRES, as everything
/// here: there is a real NCCL, and the thread is inside it (InsideReal).
[[nodiscard]] ncclResult_t call_real(const NcclCall& call);

/// True if it can estimate how long calls take: it is new enough, has communicators for all of
/// them, and they are collectives and messages.
bool real_estimates(const std::vector<NcclCall>& calls);
/// Its estimate of a group of these calls, which it does not make: microseconds, in `info`.
/// REQUIRES: real_estimates().
[[nodiscard]] ncclResult_t estimate_by_real(const std::vector<NcclCall>& calls,
                                            ncclSimInfo_t& info);

}  // namespace mscclc::nccl
