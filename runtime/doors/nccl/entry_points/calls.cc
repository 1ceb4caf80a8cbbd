// Collectives, point-to-point calls and reductions: arguments are checked in NCCL's order, then the
// call goes to the thread's group.
#include <fmt/format.h>

#include <atomic>
#include <cstring>
#include <utility>

#include "runtime/doors/nccl/abi/types.h"
#include "runtime/doors/nccl/backends/report.h"
#include "runtime/doors/nccl/calls/coll_config.h"
#include "runtime/doors/nccl/calls/group.h"
#include "runtime/doors/nccl/calls/lane.h"
#include "runtime/doors/nccl/calls/real_calls.h"
#include "runtime/doors/nccl/entry_points/entry_points.h"
#include "runtime/doors/nccl/entry_points/ranges.h"
#include "runtime/support/environment/environment.h"

namespace mscclc::nccl {
namespace {

/// Of a message, as NCCL reports it to profilers.
uint64_t bytes_of(const Call& call) {
  const auto dtype = dtype_of(call.type);
  return dtype ? call.count * info(*dtype).bytes : 0;
}

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

/// True if one of the buffers has `count` elements for every rank.
bool has_rows(CallKind kind) {
  switch (kind) {
    case CallKind::allgather:
    case CallKind::reducescatter:
    case CallKind::alltoall:
    case CallKind::gather:
    case CallKind::scatter:
      return true;
    default:
      return false;
  }
}

/// No GPU addresses more: such a count is a mistake, and its bytes may not even be a number.
constexpr uint64_t kMaxBytes = uint64_t{1} << 44;

bool is_too_large(const Call& call, Dtype dtype) {
  const uint64_t rows = has_rows(call.kind) ? call.comm->ranks : 1;
  return call.count > kMaxBytes / rows / info(dtype).bytes;
}

/// What plans refuse, of a call that is a copy on its rank.
bool overlaps(const Call& call, uint64_t bytes) {
  const auto from = reinterpret_cast<uintptr_t>(call.send),
             to = reinterpret_cast<uintptr_t>(call.receive);
  return from != to && from < to + bytes && to < from + bytes;
}

bool is_point_to_point(CallKind kind) { return kind == CallKind::send || kind == CallKind::recv; }

/// What `op` means on this communicator.
ncclResult_t find_reduction(const char* function, Call& call) {
  if (reduce_op_of(call.op)) return ncclSuccess;
  const std::lock_guard lock(call.comm->tables);
  const auto found = call.comm->reductions.find(call.op);
  if (found == call.comm->reductions.end()) {
    return fail(ncclInvalidArgument,
                fmt::format("{}: {} is not a reduction of this communicator", function, call.op));
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
  const auto dtype = dtype_of(call.type);
  if (!dtype) return refuse(fmt::format("there is no type {}", call.type));
  if (is_too_large(call, *dtype)) {
    return refuse(fmt::format("{} elements are more than any memory holds", call.count));
  }
  if (call.comm->ranks == 1 && overlaps(call, call.count * info(*dtype).bytes)) {
    return refuse("the buffers overlap");
  }
  result = check_stream(*call.comm, function, call.stream);
  if (result != ncclSuccess) return result;
  if (reduces(call.kind)) return find_reduction(function, call);
  return ncclSuccess;
}

ncclResult_t enqueue(const char* function, ncclComm_t comm, Call call) {
  const NvtxRange range = entry_points::range_of(function, bytes_of(call));
  Group& group = Group::of_thread();
  const ncclResult_t result = check(function, comm, call);
  if (result != ncclSuccess) return group.fail_with(result);
  // A send of nothing has a receive that waits for it; for a collective of nothing no rank waits.
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

namespace entry_points {

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
  const NvtxRange range = range_of("ncclGroupStart");
  Group::of_thread().start();
  return ncclSuccess;
}

ncclResult_t GroupEnd() {
  const NvtxRange range = range_of("ncclGroupEnd");
  return Group::of_thread().end();
}

ncclResult_t GroupSimulateEnd(ncclSimInfo_t* info) {
  const bool wrong = info != nullptr && (info->size < sizeof(size_t) + 2 * sizeof(int) ||
                                         info->magic != MSCCLC_NCCL_SIM_INFO_MAGIC);
  std::vector<Call> calls;
  const ncclResult_t result = Group::of_thread().drop(calls);
  if (result != ncclSuccess) return result;
  if (wrong) {
    return fail(ncclInvalidArgument,
                "ncclGroupSimulateEnd: info was not made with NCCL_SIM_INFO_INITIALIZER");
  }
  if (info == nullptr) return ncclSuccess;
  // By NCCL's model, for plans, too: it has one for every machine, and plans are picked where they
  // take less. Without it no estimate is better than one that is made up.
  if (!calls.empty() && real_estimates(calls)) {
    const InsideReal inside;
    return estimate_by_real(calls, *info);
  }
  if (info->size >= sizeof *info) info->estimatedTime = calls.empty() ? 0.0f : -1.0f;
  return ncclSuccess;
}

}  // namespace entry_points
}  // namespace mscclc::nccl

#undef NOTHING
#undef OP
#undef ROOT
#undef OP_AND_ROOT
#undef CALL
