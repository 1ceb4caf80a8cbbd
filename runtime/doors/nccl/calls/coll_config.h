// ncclCollConfig_t, the configuration of one call (2.31, and 2.32 with an event).
#pragma once

#include <optional>

#include "runtime/doors/nccl/abi/abi.h"
#include "runtime/doors/nccl/backends/real.h"
#include "runtime/doors/nccl/calls/call.h"

namespace mscclc::nccl {

/// The contract of sums of a name.
[[nodiscard]] ncclResult_t read_order(const char* function, const char* text,
                                      std::optional<SumOrder>& order);
/// Copies it into a call of `function`, with what plans do of it; nullptr: the call has none.
[[nodiscard]] ncclResult_t copy_config(const char* function, const ncclCollConfig_t* config,
                                       NcclCall& call);
/// True if it names algorithms of NCCL's: no plan serves such a call.
bool asks_for_algorithm(const NcclCall& call);
/// Whether the call has a configuration, and this NCCL takes it with such a call. If not, its
/// `launch_completion` is what would be missed.
bool takes_config(const RealNccl& real, const NcclCall& call);
/// Makes the call with its configuration. REQUIRES: takes_config().
ncclResult_t call_with_config(const RealNccl& real, ncclComm_t comm, const NcclCall& call);

}  // namespace mscclc::nccl
