// Calls that the real NCCL makes, on the communicators that it has beside ours.
#pragma once

#include <fmt/format.h>

#include <vector>

#include "runtime/doors/nccl/backends/report.h"
#include "runtime/doors/nccl/calls/call.h"

namespace mscclc::nccl {

/// Refuses a function that the real NCCL lacks. If there is no real NCCL, the group's end says so.
template <typename Function>
[[nodiscard]] ncclResult_t check_function(Function* RealNccl::*member, const char* name) {
  const RealNccl* const real = real_nccl();
  if (real == nullptr || real->*member != nullptr) return ncclSuccess;
  return fail(ncclInvalidUsage,
              fmt::format("{}: NCCL {} has no such function", name, version_text(real->version)));
}

/// Whether an NCCL has all that a call needs; else it is refused. (Of calls that only the real NCCL
/// knows their functions have seen to it.)
[[nodiscard]] ncclResult_t check_real(const RealNccl& real, const NcclCall& call);

/// Makes a call, or adds it to the group of the real NCCL that is open. REQUIRES: check_real();
/// and, as everything below, there is a real NCCL, and the thread is inside it (InsideReal).
[[nodiscard]] ncclResult_t call_real(const NcclCall& call);

/// True if it can estimate how long calls take: it is new enough, has communicators for all of
/// them, and they are collectives and messages.
bool real_estimates(const std::vector<NcclCall>& calls);
/// Its estimate of a group of these calls, which it does not make: microseconds, in `info`.
/// REQUIRES: real_estimates().
[[nodiscard]] ncclResult_t estimate_by_real(const std::vector<NcclCall>& calls,
                                            ncclSimInfo_t& info);

}  // namespace mscclc::nccl
