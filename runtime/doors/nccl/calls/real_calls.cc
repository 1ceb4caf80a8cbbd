#include "runtime/doors/nccl/calls/real_calls.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/support/precondition.h"
#include "runtime/doors/nccl/abi/types.h"
#include "runtime/doors/nccl/backends/report.h"
#include "runtime/doors/nccl/calls/coll_config.h"
#include "runtime/doors/nccl/calls/functions.h"

namespace mscclc::nccl {
namespace {

/// A call of the real NCCL, with its communicator and its reduction.
ncclResult_t call_function(const RealNccl& real, ncclComm_t comm, const NcclCall& call,
                           ncclRedOp_t op) {
  if (call.make) return call.make(real, comm);
  return is_message(call) ? call_message(real, comm, call)
                          : function_of(call.kind)->call(real, comm, call, op);
}

}  // namespace

ncclResult_t check_real(const RealNccl& real, const NcclCall& call) {
  if (call.make || takes_config(real, call)) return ncclSuccess;
  if (call.launch_completion != nullptr) {
    return fail(ncclInvalidUsage,
                fmt::format("{}: no plan serves it, and NCCL {} records no launchCompletionEvent{}",
                            name(call), version_text(real.version),
                            call.reduction == nullptr ? "" : " of pre-multiplied sums"));
  }
  if (call.reduction != nullptr && real.RedOpCreatePreMulSum == nullptr) {
    return fail(ncclInvalidUsage, "NCCL has no ncclRedOpCreatePreMulSum()");
  }
  const bool there =
      is_message(call) ? has_message(real, call) : function_of(call.kind)->is_in(real);
  if (there) return ncclSuccess;
  return fail(ncclInvalidUsage,
              fmt::format("{}: NCCL {} has no such call", name(call), version_text(real.version)));
}

ncclResult_t call_real(const NcclCall& call) {
  precondition([&] { return real_nccl() != nullptr; });
  const RealNccl& real = *real_nccl();
  const ncclComm_t comm = call.comm->real;
  if (comm == nullptr) return fail(ncclInvalidUsage, "the communicator is aborted");
  if (takes_config(real, call)) return call_with_config(real, comm, call);
  if (call.reduction == nullptr) return call_function(real, comm, call, nccl_op_of(call.op));
  const Reduction& reduction = *call.reduction;
  uint64_t value = reduction.value;
  void* const scalar =
      reduction.residence == kNcclScalarDevice ? reduction.address : static_cast<void*>(&value);
  ncclRedOp_t op = 0;
  ncclResult_t result =
      real.RedOpCreatePreMulSum(&op, scalar, reduction.type, reduction.residence, comm);
  if (result != ncclSuccess) return result;
  result = call_function(real, comm, call, op);
  // Legal before the call has run: NCCL has copied what it needs.
  const ncclResult_t destroyed = real.RedOpDestroy(op, comm);
  return result == ncclSuccess ? destroyed : result;
}

ncclResult_t estimate_by_real(const std::vector<NcclCall>& calls, ncclSimInfo_t& info) {
  precondition([&] { return real_estimates(calls); });
  const RealNccl& real = *real_nccl();
  for (const NcclCall& call : calls) {
    const ncclResult_t there = check_real(real, call);
    if (there != ncclSuccess) return there;
  }
  ncclResult_t result = real.GroupStart();
  for (const NcclCall& call : calls) {
    if (result == ncclSuccess) result = call_real(call);
  }
  const ncclResult_t ended = real.GroupSimulateEnd(&info);
  return result == ncclSuccess ? ended : result;
}

bool real_estimates(const std::vector<NcclCall>& calls) {
  return real_nccl() != nullptr && real_nccl()->GroupSimulateEnd != nullptr &&
         std::all_of(calls.begin(), calls.end(),
                     [](const NcclCall& call) { return !call.make && call.comm->real != nullptr; });
}

}  // namespace mscclc::nccl
