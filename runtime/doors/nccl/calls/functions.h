// NCCL's functions for collectives and messages, and how the real NCCL is called by them.
#pragma once

#include "ir/contract/collectives.h"
#include "runtime/doors/nccl/backends/real.h"
#include "runtime/doors/nccl/calls/call.h"

namespace mscclc::nccl {

/// A row of functions.def. What calls the real NCCL gives its result. `op`: in the place of the
/// call's.
struct CollectiveFunction {
  CollectiveKind kind;
  const char* name;  ///< "AllReduce"
  bool (*is_in)(const RealNccl& real);
  bool (*takes_config_in)(const RealNccl& real);
  /// REQUIRES: is_in().
  ncclResult_t (*call)(const RealNccl& real, ncclComm_t comm, const NcclCall& call, ncclRedOp_t op);
  /// REQUIRES: takes_config_in().
  ncclResult_t (*call_with_config)(const RealNccl& real, ncclComm_t comm, const NcclCall& call,
                                   ncclRedOp_t op, const ncclCollConfig_t* config);
};

/// nullptr: NCCL has no such collective.
const CollectiveFunction* function_of(CollectiveKind kind);

/// Whether an NCCL has ncclSend() or ncclRecv(), and calls it. REQUIRES: is_message(); of
/// call_message(): has_message().
bool has_message(const RealNccl& real, const NcclCall& call);
ncclResult_t call_message(const RealNccl& real, ncclComm_t comm, const NcclCall& call);

}  // namespace mscclc::nccl
