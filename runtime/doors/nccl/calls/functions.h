// NCCL's functions for collectives and messages, and how the real NCCL is called by them.
#pragma once

#include <optional>

#include "ir/contract/collectives.h"
#include "runtime/doors/nccl/backends/real.h"
#include "runtime/doors/nccl/calls/call.h"

namespace mscclc::nccl {

/// A row of functions.def. What calls the real NCCL gives its result; nullopt: that NCCL has no
/// such function. `op`: in the place of the call's.
struct CollectiveFunction {
  CollectiveKind kind;
  const char* name;  ///< "AllReduce"
  std::optional<ncclResult_t> (*call)(const RealNccl& real, ncclComm_t comm, const NcclCall& call,
                                      ncclRedOp_t op);
  std::optional<ncclResult_t> (*call_with_config)(const RealNccl& real, ncclComm_t comm,
                                                  const NcclCall& call, ncclRedOp_t op,
                                                  const ncclCollConfig_t* config);
};

/// nullptr: NCCL has no such collective.
const CollectiveFunction* function_of(CollectiveKind kind);

/// Calls ncclSend() or ncclRecv(). nullopt: that NCCL has none. REQUIRES: is_message().
std::optional<ncclResult_t> call_message(const RealNccl& real, ncclComm_t comm,
                                         const NcclCall& call);

}  // namespace mscclc::nccl
