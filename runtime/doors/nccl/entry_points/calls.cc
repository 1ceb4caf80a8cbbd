// Collectives, point-to-point calls and reductions: arguments are checked in NCCL's order, then the
// call goes to the thread's group.
#include <fmt/format.h>

#include <atomic>
#include <cstring>
#include <utility>

#include "runtime/doors/nccl/abi/types.h"
#include "runtime/doors/nccl/backends/report.h"
#include "runtime/doors/nccl/calls/coll_config.h"
#include "runtime/doors/nccl/calls/comm_calls.h"
#include "runtime/doors/nccl/calls/group.h"
#include "runtime/doors/nccl/calls/real_calls.h"
#include "runtime/doors/nccl/entry_points/entry_points.h"
#include "runtime/doors/nccl/entry_points/ranges.h"
#include "runtime/support/environment/environment.h"
#include "runtime/support/process/per_process.h"

namespace mscclc::nccl {
namespace {

bool reduces(const NcclCall& call) { return info(call.kind).adds_up(); }

/// No GPU addresses more: such a count is a mistake, and its bytes may not even be a number.
constexpr uint64_t kMaxBytes = uint64_t{1} << 44;

bool is_too_large(const NcclCall& call) {
  const uint64_t rows = has_rows(call.kind) ? call.comm->ranks : 1;
  return call.count > kMaxBytes / rows / info(call.dtype).bytes;
}

/// What plans refuse, of a call that is a copy on its rank.
bool overlaps(const NcclCall& call, uint64_t bytes) {
  const auto from = reinterpret_cast<uintptr_t>(call.input),
             to = reinterpret_cast<uintptr_t>(call.output);
  return from != to && from < to + bytes && to < from + bytes;
}

/// What `op` means on this communicator, for elements of `type`.
ncclResult_t find_reduction(const char* function, ncclDataType_t type, ncclRedOp_t op,
                            NcclCall& call) {
  if (const auto known = reduce_op_of(op)) {
    call.op = *known;
    return ncclSuccess;
  }
  const std::lock_guard lock(call.comm->tables);
  const auto found = call.comm->reductions.find(op);
  if (found == call.comm->reductions.end()) {
    return fail(ncclInvalidArgument,
                fmt::format("{}: {} is not a reduction of this communicator", function, op));
  }
  if (found->second->type != type) {
    return fail(ncclInvalidArgument,
                fmt::format("{}: the reduction was made for type {}, the call has type {}",
                            function, found->second->type, type));
  }
  call.reduction = found->second;
  return ncclSuccess;
}

/// Completes a call by what its caller says in NCCL's terms.
ncclResult_t check(const char* function, ncclComm_t comm, ncclDataType_t type, ncclRedOp_t op,
                   NcclCall& call) {
  ncclResult_t result = ncclSuccess;
  call.comm = usable_comm(comm, function, result);
  if (call.comm == nullptr) return result;
  const auto refuse = [&](const std::string& why) {
    return fail(ncclInvalidArgument, fmt::format("{}: {}", function, why));
  };
  if ((has_root(call.kind) || is_message(call)) && call.root >= call.comm->ranks) {
    return refuse(fmt::format("there is no rank {} among {}", root_of(call), call.comm->ranks));
  }
  const auto dtype = dtype_of(type);
  if (!dtype) return refuse(fmt::format("there is no type {}", type));
  call.dtype = *dtype;
  const auto asked = call.order ? std::nullopt : call.comm->asked_order.load();
  if (asked) call.order = asked, call.asks_for_order = "mscclc_nccl_order()";
  if (is_too_large(call)) {
    return refuse(fmt::format("{} elements are more than any memory holds", call.count));
  }
  if (call.comm->ranks == 1 && overlaps(call, call.count * info(*dtype).bytes)) {
    return refuse("the buffers overlap");
  }
  result = check_stream(*call.comm, function, call.stream);
  if (result != ncclSuccess) return result;
  return reduces(call) ? find_reduction(function, type, op, call) : ncclSuccess;
}

/// `config` nullptr: the call has none.
ncclResult_t enqueue(const char* function, ncclComm_t comm, ncclDataType_t type, ncclRedOp_t op,
                     NcclCall call, const ncclCollConfig_t* config = nullptr) {
  ThreadGroup& group = ThreadGroup::of_thread();
  ncclResult_t result = copy_config(function, config, call);
  if (result != ncclSuccess) return group.fail_with(result);
  const auto dtype = dtype_of(type);
  const NvtxRange range =
      entry_points::range_of(function, dtype ? call.count * info(*dtype).bytes : 0);
  result = check(function, comm, type, op, call);
  if (result != ncclSuccess) return group.fail_with(result);
  // A send of nothing has a receive that waits for it.
  if (moves_nothing(call) && !call.comm->compares_calls) return ncclSuccess;
  return group.add(std::move(call));
}

NcclCall collective_of(CollectiveKind kind, const void* send, void* receive, size_t count, int root,
                       cudaStream_t stream) {
  NcclCall call;
  call.kind = kind;
  call.count = count;
  call.root = static_cast<uint32_t>(root);
  call.input = send;
  call.output = receive;
  call.stream = stream;
  return call;
}

NcclCall message_of(MessageSide side, const void* send, void* receive, size_t count, int peer,
                    cudaStream_t stream) {
  NcclCall call = collective_of(CollectiveKind::none, send, receive, count, peer, stream);
  call.side = side;
  return call;
}

/// Numbers of reductions: no two communicators have the same.
struct Reductions {
  std::atomic<int> next{kNcclNumOps};
};

}  // namespace

namespace entry_points {

// The plain function, and the one that takes a configuration.
#define PARAMETERS_NONE
#define PARAMETERS_OP , ncclRedOp_t op
#define PARAMETERS_ROOT , int root
#define PARAMETERS_OP_ROOT , ncclRedOp_t op, int root
#define OP_WITH_NONE 0
#define OP_WITH_OP op
#define OP_WITH_ROOT 0
#define OP_WITH_OP_ROOT op
#define ROOT_WITH_NONE 0
#define ROOT_WITH_OP 0
#define ROOT_WITH_ROOT root
#define ROOT_WITH_OP_ROOT root
#define NCCL_COLLECTIVE(name, kind, arguments)                                                     \
  ncclResult_t name(const void* send, void* receive, size_t count,                                 \
                    ncclDataType_t type PARAMETERS_##arguments, ncclComm_t comm,                   \
                    cudaStream_t stream) {                                                         \
    return enqueue(                                                                                \
        "nccl" #name, comm, type, OP_WITH_##arguments,                                             \
        collective_of(CollectiveKind::kind, send, receive, count, ROOT_WITH_##arguments, stream)); \
  }                                                                                                \
  ncclResult_t name##Config(const void* send, void* receive, size_t count,                         \
                            ncclDataType_t type PARAMETERS_##arguments, ncclComm_t comm,           \
                            cudaStream_t stream, const ncclCollConfig_t* config) {                 \
    return enqueue(                                                                                \
        "nccl" #name "Config", comm, type, OP_WITH_##arguments,                                    \
        collective_of(CollectiveKind::kind, send, receive, count, ROOT_WITH_##arguments, stream),  \
        config);                                                                                   \
  }
#include "runtime/doors/nccl/calls/functions.def"
#undef NCCL_COLLECTIVE
#undef PARAMETERS_NONE
#undef PARAMETERS_OP
#undef PARAMETERS_ROOT
#undef PARAMETERS_OP_ROOT
#undef OP_WITH_NONE
#undef OP_WITH_OP
#undef OP_WITH_ROOT
#undef OP_WITH_OP_ROOT
#undef ROOT_WITH_NONE
#undef ROOT_WITH_OP
#undef ROOT_WITH_ROOT
#undef ROOT_WITH_OP_ROOT

ncclResult_t Bcast(void* buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                   cudaStream_t stream) {
  return enqueue("ncclBcast", comm, type, 0,
                 collective_of(CollectiveKind::broadcast, buffer, buffer, count, root, stream));
}

ncclResult_t Send(const void* send, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                  cudaStream_t stream) {
  return enqueue("ncclSend", comm, type, 0,
                 message_of(MessageSide::sends, send, nullptr, count, peer, stream));
}

ncclResult_t Recv(void* receive, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                  cudaStream_t stream) {
  return enqueue("ncclRecv", comm, type, 0,
                 message_of(MessageSide::receives, nullptr, receive, count, peer, stream));
}

ncclResult_t RedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t type,
                                  ncclScalarResidence_t residence, ncclComm_t comm) {
  ncclResult_t result = ncclSuccess;
  const CommPointer found = usable_comm(comm, "ncclRedOpCreatePreMulSum", result);
  if (found == nullptr) return ThreadGroup::of_thread().fail_with(result);
  const auto dtype = dtype_of(type);
  const bool residence_known =
      residence == kNcclScalarDevice || residence == kNcclScalarHostImmediate;
  if (op == nullptr || scalar == nullptr || !dtype || !residence_known) {
    return ThreadGroup::of_thread().fail_with(fail(
        ncclInvalidArgument, "ncclRedOpCreatePreMulSum: op, scalar, type or residence is wrong"));
  }
  auto made = std::make_shared<Reduction>();
  made->type = type;
  made->residence = residence;
  made->address = scalar;
  if (residence == kNcclScalarHostImmediate) std::memcpy(&made->value, scalar, info(*dtype).bytes);
  const std::lock_guard lock(found->tables);
  *op = made->handle = kept_over_forks<Reductions>().next++;
  found->reductions.emplace(*op, std::move(made));
  return ncclSuccess;
}

ncclResult_t RedOpDestroy(ncclRedOp_t op, ncclComm_t comm) {
  const CommPointer found = find_comm(comm);
  if (found != nullptr) {
    const std::lock_guard lock(found->tables);
    if (found->reductions.erase(op) == 1) return ncclSuccess;
  }
  return ThreadGroup::of_thread().fail_with(
      fail(ncclInvalidArgument,
           fmt::format("ncclRedOpDestroy: {} was not made on this communicator", op)));
}

ncclResult_t order(ncclComm_t comm, const char* order) {
  ncclResult_t result = ncclSuccess;
  const CommPointer found = usable_comm(comm, "mscclc_nccl_order", result);
  if (found == nullptr) return ThreadGroup::of_thread().fail_with(result);
  std::optional<SumOrder> asked;
  if (order != nullptr) result = read_order("mscclc_nccl_order", order, asked);
  if (result == ncclSuccess) found->asked_order.store(asked);
  return ThreadGroup::of_thread().fail_with(result);
}

ncclResult_t GroupStart() {
  const NvtxRange range = range_of("ncclGroupStart");
  ThreadGroup::of_thread().start();
  return ncclSuccess;
}

ncclResult_t GroupEnd() {
  const NvtxRange range = range_of("ncclGroupEnd");
  return ThreadGroup::of_thread().end();
}

ncclResult_t GroupSimulateEnd(ncclSimInfo_t* info) {
  const bool wrong = info != nullptr && (info->size < sizeof(size_t) + 2 * sizeof(int) ||
                                         info->magic != MSCCLC_NCCL_SIM_INFO_MAGIC);
  std::vector<NcclCall> calls;
  const ncclResult_t result = ThreadGroup::of_thread().drop(calls);
  if (result != ncclSuccess) return result;
  if (wrong) {
    return fail(ncclInvalidArgument,
                "ncclGroupSimulateEnd: info was not made with NCCL_SIM_INFO_INITIALIZER");
  }
  if (info == nullptr) return ncclSuccess;
  std::erase_if(calls, moves_nothing);
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
