// Collectives, point-to-point calls and reductions: arguments are checked in NCCL's order, then the
// call goes to the thread's group.
#include <fmt/format.h>

#include <atomic>
#include <cstring>
#include <utility>

#include "runtime/nccl/abi/types.h"
#include "runtime/nccl/base/report.h"
#include "runtime/nccl/calls/coll_config.h"
#include "runtime/nccl/calls/group.h"
#include "runtime/nccl/own/own.h"

namespace mscclc::nccl {
namespace {

bool has_root(CallKind kind) {
  switch (kind) {
    case CallKind::broadcast:
    case CallKind::reduce:
    case CallKind::gather:
    case CallKind::scatter:
    case CallKind::send:
    case CallKind::recv:
      return true;
    default:
      return false;
  }
}

bool reduces(CallKind kind) {
  return kind == CallKind::allreduce || kind == CallKind::reduce || kind == CallKind::reducescatter;
}

bool is_point_to_point(CallKind kind) { return kind == CallKind::send || kind == CallKind::recv; }

/// What `op` means on this communicator.
ncclResult_t find_reduction(const char* function, Call& call) {
  if (reduce_op_of(call.op)) return ncclSuccess;
  const std::lock_guard lock(call.comm->tables);
  const auto found = call.comm->reductions.find(call.op);
  if (found == call.comm->reductions.end()) {
    return fail(ncclInvalidArgument,
                fmt::format("{}: {} is no reduction of this communicator", function, call.op));
  }
  if (found->second->type != call.type) {
    return fail(ncclInvalidArgument,
                fmt::format("{}: the reduction was made for type {}, the call has type {}",
                            function, found->second->type, call.type));
  }
  call.reduction = found->second;
  return ncclSuccess;
}

ncclResult_t check(const char* function, ncclComm_t comm, Call& call) {
  ncclResult_t result = ncclSuccess;
  call.comm = usable_comm(comm, function, result);
  if (call.comm == nullptr) return result;
  const auto refuse = [&](const std::string& why) {
    return fail(ncclInvalidArgument, fmt::format("{}: {}", function, why));
  };
  if (has_root(call.kind) && (call.root < 0 || call.root >= static_cast<int>(call.comm->ranks))) {
    return refuse(fmt::format("there is no rank {} among {}", call.root, call.comm->ranks));
  }
  if (!dtype_of(call.type)) return refuse(fmt::format("there is no type {}", call.type));
  if (reduces(call.kind)) return find_reduction(function, call);
  return ncclSuccess;
}

ncclResult_t enqueue(const char* function, ncclComm_t comm, Call call) {
  Group& group = Group::of_thread();
  const ncclResult_t result = check(function, comm, call);
  if (result != ncclSuccess) return group.fail_with(result);
  // A send of nothing has a receive that waits for it; a collective of nothing has nobody.
  if (call.count == 0 && !is_point_to_point(call.kind)) return ncclSuccess;
  return group.add(std::move(call));
}

/// The same with a configuration of the call.
ncclResult_t enqueue(const char* function, ncclComm_t comm, Call call,
                     const ncclCollConfig_t* config) {
  if (copy_config(config, call)) return enqueue(function, comm, std::move(call));
  return Group::of_thread().fail_with(
      fail(ncclInvalidArgument,
           fmt::format("{}: config was not made with NCCL_COLLCONFIG_INITIALIZER", function)));
}

/// A handle that no other communicator has.
ncclRedOp_t next_reduction() {
  static std::atomic<int> last{kNcclNumOps};
  return last.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

namespace own {

// The plain function, and the one that takes a configuration.
#define COLLECTIVE(name, kind, parameters, ...)                                                    \
  ncclResult_t name(const void* send, void* receive, size_t count, ncclDataType_t type parameters, \
                    ncclComm_t comm, cudaStream_t stream) {                                        \
    return enqueue("nccl" #name, comm, __VA_ARGS__);                                               \
  }                                                                                                \
  ncclResult_t name##Config(const void* send, void* receive, size_t count,                         \
                            ncclDataType_t type parameters, ncclComm_t comm, cudaStream_t stream,  \
                            const ncclCollConfig_t* config) {                                      \
    return enqueue("nccl" #name "Config", comm, __VA_ARGS__, config);                              \
  }
#define NOTHING
#define OP , ncclRedOp_t op
#define ROOT , int root
#define OP_AND_ROOT , ncclRedOp_t op, int root
#define CALL(kind, op, root)                                                                    \
  Call {                                                                                        \
    nullptr, CallKind::kind, send, receive, count, type, op, root, stream, nullptr, nullptr, {} \
  }
// clang-format off
COLLECTIVE(AllReduce, allreduce, OP, CALL(allreduce, op, 0))
COLLECTIVE(Broadcast, broadcast, ROOT, CALL(broadcast, 0, root))
COLLECTIVE(Reduce, reduce, OP_AND_ROOT, CALL(reduce, op, root))
COLLECTIVE(AllGather, allgather, NOTHING, CALL(allgather, 0, 0))
COLLECTIVE(ReduceScatter, reducescatter, OP, CALL(reducescatter, op, 0))
COLLECTIVE(AlltoAll, alltoall, NOTHING, CALL(alltoall, 0, 0))
COLLECTIVE(Gather, gather, ROOT, CALL(gather, 0, root))
COLLECTIVE(Scatter, scatter, ROOT, CALL(scatter, 0, root))
// clang-format on
#undef COLLECTIVE

ncclResult_t Bcast(void* buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                   cudaStream_t stream) {
  const void* const send = buffer;
  void* const receive = buffer;
  return enqueue("ncclBcast", comm, CALL(broadcast, 0, root));
}

ncclResult_t Send(const void* send, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                  cudaStream_t stream) {
  void* const receive = nullptr;
  return enqueue("ncclSend", comm, CALL(send, 0, peer));
}

ncclResult_t Recv(void* receive, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                  cudaStream_t stream) {
  const void* const send = nullptr;
  return enqueue("ncclRecv", comm, CALL(recv, 0, peer));
}

ncclResult_t RedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t type,
                                  ncclScalarResidence_t residence, ncclComm_t comm) {
  ncclResult_t result = ncclSuccess;
  const CommPointer found = usable_comm(comm, "ncclRedOpCreatePreMulSum", result);
  if (found == nullptr) return Group::of_thread().fail_with(result);
  const auto dtype = dtype_of(type);
  const bool residence_known =
      residence == kNcclScalarDevice || residence == kNcclScalarHostImmediate;
  if (op == nullptr || scalar == nullptr || !dtype || !residence_known) {
    return Group::of_thread().fail_with(fail(
        ncclInvalidArgument, "ncclRedOpCreatePreMulSum: op, scalar, type or residence is wrong"));
  }
  auto made = std::make_shared<Reduction>();
  made->type = type;
  made->residence = residence;
  made->address = scalar;
  if (residence == kNcclScalarHostImmediate) std::memcpy(&made->value, scalar, info(*dtype).bytes);
  const std::lock_guard lock(found->tables);
  *op = next_reduction();
  found->reductions.emplace(*op, std::move(made));
  return ncclSuccess;
}

ncclResult_t RedOpDestroy(ncclRedOp_t op, ncclComm_t comm) {
  const CommPointer found = find_comm(comm);
  if (found != nullptr) {
    const std::lock_guard lock(found->tables);
    if (found->reductions.erase(op) == 1) return ncclSuccess;
  }
  return Group::of_thread().fail_with(
      fail(ncclInvalidArgument,
           fmt::format("ncclRedOpDestroy: {} was not made on this communicator", op)));
}

ncclResult_t GroupStart() {
  Group::of_thread().start();
  return ncclSuccess;
}

ncclResult_t GroupEnd() { return Group::of_thread().end(); }

ncclResult_t GroupSimulateEnd(ncclSimInfo_t* info) {
  const bool wrong = info != nullptr && (info->size < sizeof(size_t) + 2 * sizeof(int) ||
                                         info->magic != MSCCLC_NCCL_SIM_INFO_MAGIC);
  size_t calls = 0;
  const ncclResult_t result = Group::of_thread().drop(calls);
  if (result != ncclSuccess) return result;
  if (wrong) {
    return fail(ncclInvalidArgument,
                "ncclGroupSimulateEnd: info was not made with NCCL_SIM_INFO_INITIALIZER");
  }
  // Nobody has measured these plans here: no estimate is better than one that is made up.
  if (info != nullptr && info->size >= sizeof *info)
    info->estimatedTime = calls == 0 ? 0.0f : -1.0f;
  return ncclSuccess;
}

}  // namespace own
}  // namespace mscclc::nccl

#undef NOTHING
#undef OP
#undef ROOT
#undef OP_AND_ROOT
#undef CALL
