#include "runtime/doors/nccl/calls/real_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "runtime/doors/nccl/backends/report.h"
#include "runtime/doors/nccl/calls/coll_config.h"

namespace mscclc::nccl {
namespace {

/// A call of the real NCCL, with its communicator and its reduction.
ncclResult_t call_by_kind(const RealNccl& real, ncclComm_t comm, const Call& c, ncclRedOp_t op) {
  switch (c.kind) {
    case CallKind::allreduce:
      return real.AllReduce(c.send, c.receive, c.count, c.type, op, comm, c.stream);
    case CallKind::broadcast:
      return real.Broadcast(c.send, c.receive, c.count, c.type, c.root, comm, c.stream);
    case CallKind::reduce:
      return real.Reduce(c.send, c.receive, c.count, c.type, op, c.root, comm, c.stream);
    case CallKind::allgather:
      return real.AllGather(c.send, c.receive, c.count, c.type, comm, c.stream);
    case CallKind::reducescatter:
      return real.ReduceScatter(c.send, c.receive, c.count, c.type, op, comm, c.stream);
    case CallKind::alltoall:
      if (real.AlltoAll == nullptr) break;
      return real.AlltoAll(c.send, c.receive, c.count, c.type, comm, c.stream);
    case CallKind::gather:
      if (real.Gather == nullptr) break;
      return real.Gather(c.send, c.receive, c.count, c.type, c.root, comm, c.stream);
    case CallKind::scatter:
      if (real.Scatter == nullptr) break;
      return real.Scatter(c.send, c.receive, c.count, c.type, c.root, comm, c.stream);
    case CallKind::send:
      if (real.Send == nullptr) break;
      return real.Send(c.send, c.count, c.type, c.root, comm, c.stream);
    case CallKind::recv:
      if (real.Recv == nullptr) break;
      return real.Recv(c.receive, c.count, c.type, c.root, comm, c.stream);
    case CallKind::other:
      return c.make(real, comm);
  }
  return fail(ncclInvalidUsage, fmt::format("{}: NCCL {} has no such call", name(c.kind),
                                            version_text(real.version)));
}

}  // namespace

ncclResult_t call_real(const Call& call) {
  const RealNccl& real = *real_nccl();
  const ncclComm_t comm = call.comm->real;
  if (comm == nullptr) return fail(ncclInvalidUsage, "the communicator is aborted");
  if (call.config != nullptr) {
    if (const auto result = call_with_config(real, comm, call)) return *result;
  }
  if (call.reduction == nullptr) return call_by_kind(real, comm, call, call.op);
  if (real.RedOpCreatePreMulSum == nullptr) {
    return fail(ncclInvalidUsage, "NCCL has no ncclRedOpCreatePreMulSum()");
  }
  const Reduction& reduction = *call.reduction;
  uint64_t value = reduction.value;
  void* const scalar =
      reduction.residence == kNcclScalarDevice ? reduction.address : static_cast<void*>(&value);
  ncclRedOp_t op = 0;
  ncclResult_t result =
      real.RedOpCreatePreMulSum(&op, scalar, reduction.type, reduction.residence, comm);
  if (result != ncclSuccess) return result;
  result = call_by_kind(real, comm, call, op);
  // Legal before the call has run: NCCL has copied what it needs.
  const ncclResult_t destroyed = real.RedOpDestroy(op, comm);
  return result == ncclSuccess ? destroyed : result;
}

ncclResult_t estimate_by_real(const std::vector<Call>& calls, ncclSimInfo_t& info) {
  const RealNccl& real = *real_nccl();
  ncclResult_t result = real.GroupStart();
  for (const Call& call : calls) {
    if (result == ncclSuccess) result = call_real(call);
  }
  const ncclResult_t ended = real.GroupSimulateEnd(&info);
  return result == ncclSuccess ? ended : result;
}

bool real_estimates(const std::vector<Call>& calls) {
  return real_nccl() != nullptr && real_nccl()->GroupSimulateEnd != nullptr &&
         std::all_of(calls.begin(), calls.end(), [](const Call& call) {
           return call.kind != CallKind::other && call.comm->real != nullptr;
         });
}

}  // namespace mscclc::nccl
