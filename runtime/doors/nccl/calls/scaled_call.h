// Averages of floats, as NCCL's: each contribution is divided by the number of ranks before it is
// added up, so that the average of finite numbers is finite. (Plans of their own divide the sum.)
#pragma once

#include <memory>
#include <string>

#include "runtime/doors/nccl/comm/comm.h"
#include "runtime/doors/nccl/comm/plan_calls.h"

namespace mscclc::nccl {

/// True if a call is such an average.
bool scales_first(const CollectiveCall& call);

/// The plan for it. nullptr: none serves it. `what`, as PlanCalls::serve() has it. The call's
/// buffers are looked at by prepare(). REQUIRES: scales_first(), and what PlanCalls::serve() does.
std::unique_ptr<ServedCall> serve_scaled(Comm& comm, const CollectiveCall& call,
                                         StreamHandle stream, std::string* what);

}  // namespace mscclc::nccl
