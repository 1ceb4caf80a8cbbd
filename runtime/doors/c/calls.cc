// Collectives by name, alone and in groups.
#include <fmt/format.h>

#include <deque>
#include <limits>
#include <utility>
#include <vector>

#include "runtime/doors/c/errors.h"
#include "runtime/doors/c/handles.h"
#include "runtime/doors/c/orders.h"
#include "runtime/doors/c/ranges.h"
#include "runtime/doors/c/thread_state.h"

namespace mscclc::capi {
namespace {

/// The number of an enum of ours, or one that stands for none.
template <class Enum>
Enum enum_of(int32_t value) {
  constexpr auto kNone = std::numeric_limits<std::underlying_type_t<Enum>>::max();
  return static_cast<Enum>(value < 0 || value >= kNone ? kNone : static_cast<uint8_t>(value));
}

static_assert(
    MSCCLC_E4M3B15 == static_cast<int>(Dtype::e4m3b15) &&
    MSCCLC_E5M2 == static_cast<int>(Dtype::e5m2) && MSCCLC_U8 == static_cast<int>(Dtype::u8) &&
    MSCCLC_F16 == static_cast<int>(Dtype::f16) && MSCCLC_BF16 == static_cast<int>(Dtype::bf16) &&
    MSCCLC_F64 == static_cast<int>(Dtype::f64) && MSCCLC_I32 == static_cast<int>(Dtype::i32) &&
    MSCCLC_U32 == static_cast<int>(Dtype::u32) && MSCCLC_I64 == static_cast<int>(Dtype::i64) &&
    MSCCLC_U64 == static_cast<int>(Dtype::u64) && MSCCLC_I8 == static_cast<int>(Dtype::i8) &&
    MSCCLC_E4M3 == static_cast<int>(Dtype::e4m3));
static_assert(MSCCLC_SUM == static_cast<int>(ReduceOp::sum) &&
              MSCCLC_MIN == static_cast<int>(ReduceOp::min) &&
              MSCCLC_MAX == static_cast<int>(ReduceOp::max) &&
              MSCCLC_PROD == static_cast<int>(ReduceOp::prod) &&
              MSCCLC_AVG == static_cast<int>(ReduceOp::avg));
static_assert(MSCCLC_ALLREDUCE == static_cast<int>(CollectiveKind::allreduce) &&
              MSCCLC_REDUCE == static_cast<int>(CollectiveKind::reduce) &&
              MSCCLC_ALLGATHER == static_cast<int>(CollectiveKind::allgather) &&
              MSCCLC_GATHER == static_cast<int>(CollectiveKind::gather) &&
              MSCCLC_REDUCESCATTER == static_cast<int>(CollectiveKind::reducescatter) &&
              MSCCLC_ALLTOALL == static_cast<int>(CollectiveKind::alltoall) &&
              MSCCLC_ALLTOALLV == static_cast<int>(CollectiveKind::alltoallv) &&
              MSCCLC_BROADCAST == static_cast<int>(CollectiveKind::broadcast) &&
              MSCCLC_SCATTER == static_cast<int>(CollectiveKind::scatter) &&
              MSCCLC_SENDRECV == static_cast<int>(CollectiveKind::sendrecv) &&
              MSCCLC_BARRIER == static_cast<int>(CollectiveKind::barrier));

CollectiveCall call_of(const mscclc_call_t& call, uint32_t ranks) {
  CollectiveCall made;
  made.kind = enum_of<CollectiveKind>(call.kind);
  made.count = call.count;
  made.dtype = enum_of<Dtype>(call.dtype);
  made.op = enum_of<ReduceOp>(call.op);
  if (call.accumulate != MSCCLC_DTYPE_DEFAULT) made.accumulate = enum_of<Dtype>(call.accumulate);
  made.root = call.root;
  made.shift = call.shift;
  made.input = call.input;
  made.output = call.output;
  made.registered = call.registered != 0;
  if (call.counts != nullptr) made.counts = {call.counts, uint64_t{ranks} * ranks};
  if (call.input_offsets != nullptr) made.input_offsets = {call.input_offsets, ranks};
  if (call.output_offsets != nullptr) made.output_offsets = {call.output_offsets, ranks};
  if (call.tag != nullptr) made.tag = call.tag;
  made.order = order_of(call.order);
  return made;
}

mscclc_result_t note(mscclc_comm& comm, const CollectiveCall& call, StreamHandle stream) {
  Diagnostics diagnostics;
  if (!comm.collectives->check(call, diagnostics)) return fail(diagnostics);
  Noted noted{&comm,
              comm.collectives,
              call,
              stream,
              {call.counts.begin(), call.counts.end()},
              {call.input_offsets.begin(), call.input_offsets.end()},
              {call.output_offsets.begin(), call.output_offsets.end()},
              std::string(call.tag)};
  ThreadState::get().group.calls.push_back(std::move(noted));
  return MSCCLC_SUCCESS;
}

mscclc_result_t make(mscclc_comm* comm, const mscclc_call_t& call, StreamHandle stream) {
  const Use<mscclc_comm> use(comm);
  if (!use) return use.refuse("a collective", "'comm' is not a communicator");
  if (*comm->finalized) return refuse_finalized("a collective");
  if (call.externals_count > 0 || call.flags_count > 0 || call.budget != 0 ||
      call.launch_order != MSCCLC_OTHER_FIRST) {
    return refuse("a collective",
                  "externals, flags, budget and launch_order go with a plan: mscclc_plan_launch() "
                  "takes them");
  }
  if (const char* why = why_no_stream(comm->config.device, stream)) {
    return refuse("a collective", why);
  }
  if (!is_order(call.order)) return refuse("a collective", "'order' is none");
  const CollectiveCall made = call_of(call, comm->communicator->size());
  if (ThreadState::get().group.depth > 0) return note(*comm, made, stream);
  Diagnostics diagnostics;
  return comm->collectives->call(made, stream, diagnostics) ? mscclc_result_t{MSCCLC_SUCCESS}
                                                            : fail(diagnostics);
}

/// As profilers know the functions for each kind.
constexpr const char* kFunctions[] = {
#define COLLECTIVE(name, input, output, source, in_place, bus) "mscclc_" #name,
#include "ir/contract/collectives.def"
#undef COLLECTIVE
};

NvtxRange range_of(const mscclc_call_t& call) {
  const bool known = call.kind >= MSCCLC_ALLREDUCE && call.kind <= MSCCLC_BARRIER;
  const auto types = static_cast<int32_t>(dtype_table().size());
  const bool has_bytes = call.count > 0 && call.dtype >= 0 && call.dtype < types;
  return capi::range_of(known ? kFunctions[call.kind] : "mscclc_collective",
                        has_bytes
                            ? std::optional(call.count * info(enum_of<Dtype>(call.dtype)).bytes)
                            : std::nullopt);
}

/// A call alone, or one of a group, which must know that it was refused. nullptr: no call that this
/// version knows.
mscclc_result_t collective(mscclc_comm* comm, const mscclc_call_t* call, StreamHandle stream) {
  const mscclc_result_t result = guarded([&] {
    if (call == nullptr) {
      return refuse("mscclc_collective", "'call' is NULL, or has no size that this version knows");
    }
    const NvtxRange range = range_of(*call);
    return make(comm, *call, stream);
  });
  OpenGroup& group = ThreadState::get().group;
  if (result == MSCCLC_SUCCESS || group.depth == 0 || group.refused != MSCCLC_SUCCESS) {
    return result;
  }
  group.refused = result;
  return guarded([&] {
    group.why = mscclc_last_error();
    return result;
  });
}

mscclc_result_t end_group() {
  const OpenGroup ended = std::exchange(ThreadState::get().group, {});
  if (ended.refused != MSCCLC_SUCCESS) {
    return fail(ended.refused,
                "the group was not launched, as a call of it was refused: " + ended.why);
  }
  std::vector<RankCall> calls;
  std::deque<Use<mscclc_comm>> uses;  // until the calls are made
  for (const Noted& noted : ended.calls) {
    if (!uses.emplace_back(noted.comm) || noted.collectives.lock() != noted.comm->collectives) {
      return fail(MSCCLC_INVALID_USAGE, "a communicator of the group was destroyed before its end");
    }
    if (*noted.comm->finalized) return refuse_finalized("mscclc_group_end");
    if (why_no_stream(noted.comm->config.device, noted.stream) != nullptr) {
      return fail(MSCCLC_INVALID_USAGE, "a stream of the group was destroyed before its end");
    }
    calls.push_back(noted.rank_call());
  }
  Diagnostics diagnostics;
  return call_together(calls, diagnostics) ? mscclc_result_t{MSCCLC_SUCCESS} : fail(diagnostics);
}

mscclc_call_t call_with(mscclc_kind_t kind, const void* input, void* output, uint64_t count,
                        mscclc_dtype_t dtype, mscclc_op_t op = MSCCLC_SUM, uint32_t root = 0) {
  mscclc_call_t call = MSCCLC_CALL_INIT;
  call.kind = kind;
  call.input = input;
  call.output = output;
  call.count = count;
  call.dtype = dtype;
  call.op = op;
  call.root = root;
  return call;
}

/// Of a choice, or of what there was instead.
std::string text_of(const PickedPlan* picked, const std::vector<PassedOver>& passed_over) {
  if (picked != nullptr) return fmt::format("{}\n{}", picked->name, picked->why);
  std::string text;
  for (const PassedOver& plan : passed_over) text += fmt::format("{}: {}\n", plan.name, plan.why);
  return text;
}

/// Answers a question about a call that is not made: `answer` gets the call as this version knows
/// it.
template <class Answer>
mscclc_result_t ask(const char* function, mscclc_comm_t* comm, const mscclc_call_t* call,
                    const Answer& answer) {
  mscclc_call_t own = MSCCLC_CALL_INIT;
  const Use<mscclc_comm> use(comm);
  if (!use || call == nullptr || !take_struct(call, own)) {
    return use.refuse(function, "'comm' is not a communicator, or 'call' is not of this version");
  }
  if (!is_order(own.order)) return refuse(function, "'order' is none");
  return answer(own);
}

mscclc_result_t choose(mscclc_comm& comm, const mscclc_call_t& given, bool capturing, char** text) {
  const CollectiveCall call = call_of(given, comm.communicator->size());
  Diagnostics diagnostics;
  if (!comm.collectives->check(call, diagnostics, BuffersOf::question)) return fail(diagnostics);
  if (!comm.collectives->needs_plan(call)) {
    *text = copy_text("");
    return MSCCLC_SUCCESS;
  }
  std::vector<PassedOver> passed_over;
  const auto picked = comm.collectives->choose(call, capturing, &passed_over, diagnostics);
  if (picked == nullptr && diagnostics.has_errors()) return fail(diagnostics);
  *text = copy_text(text_of(picked.get(), passed_over));
  return picked != nullptr ? mscclc_result_t{MSCCLC_SUCCESS}
                           : fail(MSCCLC_NO_PLAN, "no plan serves the call");
}

mscclc_result_t would_wait(mscclc_comm& comm, const mscclc_call_t& given, StreamHandle stream,
                           int32_t& waits) {
  if (const char* why = why_no_stream(comm.config.device, stream)) {
    return refuse("mscclc_waits", why);
  }
  const CollectiveCall call = call_of(given, comm.communicator->size());
  Diagnostics diagnostics;
  if (!comm.collectives->check(call, diagnostics, BuffersOf::question)) return fail(diagnostics);
  const OneThread::Visit visit(*comm.communicator->one_thread(), diagnostics);
  if (!visit) return fail(diagnostics);
  Collectives& collectives = *comm.collectives;
  const bool launch_waits = collectives.launches_wait() && comm.communicator->size() > 1;
  waits = launch_waits || collectives.waits_for_ranks(call, stream) ? 1 : 0;
  return MSCCLC_SUCCESS;
}

}  // namespace
}  // namespace mscclc::capi

using namespace mscclc;
using namespace mscclc::capi;

mscclc_result_t mscclc_collective(mscclc_comm_t* comm, const mscclc_call_t* call,
                                  mscclc_stream_t stream) {
  mscclc_call_t own = MSCCLC_CALL_INIT;
  return collective(comm, call != nullptr && take_struct(call, own) ? &own : nullptr, stream);
}

mscclc_result_t mscclc_choose(mscclc_comm_t* comm, const mscclc_call_t* call, int32_t capturing,
                              char** text) {
  return guarded([&] {
    if (text == nullptr) return refuse("mscclc_choose", "'text' is NULL");
    *text = nullptr;
    return ask("mscclc_choose", comm, call,
               [&](const mscclc_call_t& own) { return choose(*comm, own, capturing != 0, text); });
  });
}

mscclc_result_t mscclc_waits(mscclc_comm_t* comm, const mscclc_call_t* call, mscclc_stream_t stream,
                             int32_t* waits) {
  return guarded([&] {
    if (waits == nullptr) return refuse("mscclc_waits", "'waits' is NULL");
    return ask("mscclc_waits", comm, call,
               [&](const mscclc_call_t& own) { return would_wait(*comm, own, stream, *waits); });
  });
}

mscclc_result_t mscclc_allreduce(mscclc_comm_t* comm, const void* input, void* output,
                                 uint64_t count, mscclc_dtype_t dtype, mscclc_op_t op,
                                 mscclc_stream_t stream) {
  const mscclc_call_t call = call_with(MSCCLC_ALLREDUCE, input, output, count, dtype, op);
  return collective(comm, &call, stream);
}

mscclc_result_t mscclc_reduce(mscclc_comm_t* comm, const void* input, void* output, uint64_t count,
                              mscclc_dtype_t dtype, mscclc_op_t op, uint32_t root,
                              mscclc_stream_t stream) {
  const mscclc_call_t call = call_with(MSCCLC_REDUCE, input, output, count, dtype, op, root);
  return collective(comm, &call, stream);
}

mscclc_result_t mscclc_allgather(mscclc_comm_t* comm, const void* input, void* output,
                                 uint64_t count, mscclc_dtype_t dtype, mscclc_stream_t stream) {
  const mscclc_call_t call = call_with(MSCCLC_ALLGATHER, input, output, count, dtype);
  return collective(comm, &call, stream);
}

mscclc_result_t mscclc_gather(mscclc_comm_t* comm, const void* input, void* output, uint64_t count,
                              mscclc_dtype_t dtype, uint32_t root, mscclc_stream_t stream) {
  const mscclc_call_t call =
      call_with(MSCCLC_GATHER, input, output, count, dtype, MSCCLC_SUM, root);
  return collective(comm, &call, stream);
}

mscclc_result_t mscclc_reducescatter(mscclc_comm_t* comm, const void* input, void* output,
                                     uint64_t count, mscclc_dtype_t dtype, mscclc_op_t op,
                                     mscclc_stream_t stream) {
  const mscclc_call_t call = call_with(MSCCLC_REDUCESCATTER, input, output, count, dtype, op);
  return collective(comm, &call, stream);
}

mscclc_result_t mscclc_scatter(mscclc_comm_t* comm, const void* input, void* output, uint64_t count,
                               mscclc_dtype_t dtype, uint32_t root, mscclc_stream_t stream) {
  const mscclc_call_t call =
      call_with(MSCCLC_SCATTER, input, output, count, dtype, MSCCLC_SUM, root);
  return collective(comm, &call, stream);
}

mscclc_result_t mscclc_alltoall(mscclc_comm_t* comm, const void* input, void* output,
                                uint64_t count, mscclc_dtype_t dtype, mscclc_stream_t stream) {
  const mscclc_call_t call = call_with(MSCCLC_ALLTOALL, input, output, count, dtype);
  return collective(comm, &call, stream);
}

mscclc_result_t mscclc_alltoallv(mscclc_comm_t* comm, const void* input, void* output,
                                 const uint64_t* counts, const uint64_t* input_offsets,
                                 const uint64_t* output_offsets, mscclc_dtype_t dtype,
                                 mscclc_stream_t stream) {
  mscclc_call_t call = call_with(MSCCLC_ALLTOALLV, input, output, 0, dtype);
  call.counts = counts;
  call.input_offsets = input_offsets;
  call.output_offsets = output_offsets;
  return collective(comm, &call, stream);
}

mscclc_result_t mscclc_broadcast(mscclc_comm_t* comm, const void* input, void* output,
                                 uint64_t count, mscclc_dtype_t dtype, uint32_t root,
                                 mscclc_stream_t stream) {
  const mscclc_call_t call =
      call_with(MSCCLC_BROADCAST, input, output, count, dtype, MSCCLC_SUM, root);
  return collective(comm, &call, stream);
}

mscclc_result_t mscclc_sendrecv(mscclc_comm_t* comm, const void* input, void* output,
                                uint64_t count, mscclc_dtype_t dtype, int64_t shift,
                                mscclc_stream_t stream) {
  mscclc_call_t call = call_with(MSCCLC_SENDRECV, input, output, count, dtype);
  call.shift = shift;
  return collective(comm, &call, stream);
}

mscclc_result_t mscclc_barrier(mscclc_comm_t* comm, mscclc_stream_t stream) {
  const mscclc_call_t call = call_with(MSCCLC_BARRIER, nullptr, nullptr, 0, MSCCLC_F32);
  return collective(comm, &call, stream);
}

mscclc_result_t mscclc_group_start(void) {
  return guarded([&] {
    const NvtxRange range = capi::range_of("mscclc_group_start");
    ++ThreadState::get().group.depth;
    return mscclc_result_t{MSCCLC_SUCCESS};
  });
}

mscclc_result_t mscclc_group_end(void) {
  return guarded([&] {
    const NvtxRange range = capi::range_of("mscclc_group_end");
    OpenGroup& group = ThreadState::get().group;
    if (group.depth == 0) {
      return fail(MSCCLC_INVALID_USAGE, "mscclc_group_end: this thread has begun no group");
    }
    return --group.depth > 0 ? mscclc_result_t{MSCCLC_SUCCESS} : end_group();
  });
}
