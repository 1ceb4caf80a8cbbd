#include "runtime/doors/nccl/calls/call.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "runtime/doors/nccl/abi/types.h"
#include "runtime/doors/nccl/backends/device.h"
#include "runtime/doors/nccl/backends/report.h"
#include "runtime/doors/nccl/calls/coll_config.h"
#include "runtime/doors/nccl/calls/compare.h"
#include "runtime/doors/nccl/calls/lane.h"
#include "runtime/doors/nccl/calls/message_calls.h"
#include "runtime/doors/nccl/calls/real_calls.h"
#include "runtime/doors/nccl/calls/scaled_call.h"
#include "runtime/doors/nccl/calls/window_calls.h"
#include "runtime/support/process/quiet_thread.h"

namespace mscclc::nccl {
namespace {

std::optional<CollectiveKind> collective_of(CallKind kind) {
  switch (kind) {
    case CallKind::allreduce:
      return CollectiveKind::allreduce;
    case CallKind::broadcast:
      return CollectiveKind::broadcast;
    case CallKind::reduce:
      return CollectiveKind::reduce;
    case CallKind::allgather:
      return CollectiveKind::allgather;
    case CallKind::reducescatter:
      return CollectiveKind::reducescatter;
    case CallKind::alltoall:
      return CollectiveKind::alltoall;
    case CallKind::gather:
      return CollectiveKind::gather;
    case CallKind::scatter:
      return CollectiveKind::scatter;
    case CallKind::send:
    case CallKind::recv:
    case CallKind::other:
      return std::nullopt;
  }
  return std::nullopt;
}

/// nullopt: plans could not serve it.
std::optional<CollectiveCall> for_plans(const Call& call) {
  const auto kind = collective_of(call.kind);
  if (!kind || call.reduction != nullptr || asks_for_algorithm(call)) return std::nullopt;
  return CollectiveCall{.kind = *kind,
                        .count = call.count,
                        .dtype = *dtype_of(call.type),
                        .op = reduce_op_of(call.op).value_or(ReduceOp::sum),
                        .root = static_cast<uint32_t>(call.root),
                        .input = call.send,
                        .output = call.receive};
}

/// Finds out what serves a call, once. REQUIRES, as prepare(): the communicator's mutex is held.
void find_server(Comm& comm, Prepared& prepared) {
  const Call& call = *prepared.call;
  if (is_message(call) && serves_messages(comm)) return;  // message_calls.h
  const StreamHandle stream = stream_of(comm, call);
  auto wanted = for_plans(call);
  if (comm.ranks == 1 && wanted) {
    prepared.plan = std::make_unique<Copy>(comm, stream, call.send, call.receive,
                                           call.count * info(wanted->dtype).bytes);
    return;
  }
  prepared.server = !comm.why_real.empty()  ? comm.why_real
                    : comm.plans == nullptr ? "there are no plans"
                                            : "plans do no such calls";
  if (!wanted || comm.plans == nullptr) return;
  const bool logged =
      informs(Subsystem::coll) || comm.requires_plans || comm.order_of_sums != kDefaultOrder;
  std::string* const server = logged ? &prepared.server : nullptr;
  wanted->registered = lies_in_windows(comm, call);
  prepared.plan =
      scales_first(*wanted)
          ? serve_scaled(comm, *wanted, stream, server)
          : comm.plans->serve(*wanted, stream, comm.device->is_capturing(stream), server);
}

/// NCCL computes each sum once and sends it on, so all ranks get the same bits, but in an order of
/// its own: what must keep to another one is not left to it.
bool may_be_left_to_nccl(const Comm& comm, const Call& call) {
  const auto kind = collective_of(call.kind);
  const auto type = dtype_of(call.type);
  const auto op = reduce_op_of(call.op);
  if (!kind || !type || comm.order_of_sums == kDefaultOrder) return true;
  return !order_matters(
      {.kind = *kind, .ranks = comm.ranks, .dtype = *type, .order = comm.order_of_sums},
      op.value_or(ReduceOp::sum));
}

ncclResult_t prepare(Comm& comm, Prepared& prepared) {
  const Call& call = *prepared.call;
  if (prepared.plan == nullptr && !may_be_left_to_nccl(comm, call)) {
    return fail(ncclInvalidUsage,
                fmt::format("{}: no plan serves it ({}), and NCCL does not keep to '{}', which "
                            "MSCCLC_ORDER asks for",
                            name(call.kind), prepared.server, name(comm.order_of_sums)));
  }
  if (prepared.plan == nullptr) return prepare_real(comm, call, prepared.server);
  Diagnostics diagnostics;
  if (!prepared.plan->prepare(diagnostics)) return fail(name(call.kind), diagnostics);
  if (comm.profiler != nullptr) prepared.plan_name = prepared.plan->plan();
  say_server(comm, call, prepared.server);
  return ncclSuccess;
}

/// MSCCLC_CHECK_CALLS: with the other ranks.
ncclResult_t compare(const Lane& lane) {
  if (!lane.comm->compares_calls) return ncclSuccess;
  std::vector<const Call*> calls;
  for (const Prepared& prepared : lane.calls) calls.push_back(prepared.call);
  return compare_calls(*lane.comm, calls);
}

void prepare_lane(Lane& lane) {
  const std::lock_guard lock(lane.comm->mutex);
  lane.result = compare(lane);
  if (lane.result != ncclSuccess) return;
  lane.result = settle_own_messages(lane);
  if (lane.result != ncclSuccess) return;
  MessagePreparation messages(lane);
  for (Prepared& prepared : lane.calls) {
    if (is_message(*prepared.call) && serves_messages(*lane.comm)) continue;
    lane.result = prepare(*lane.comm, prepared);
    if (lane.result != ncclSuccess) return;
  }
  lane.result = messages.finish();
  sort_messages(lane);
}

/// True if preparing may wait for other ranks, which must not happen one rank after the other.
bool may_wait(Lane& lane) {
  Comm& comm = *lane.comm;
  const std::lock_guard lock(comm.mutex);
  if (comm.compares_calls || messages_may_wait(lane)) return true;
  return std::any_of(lane.calls.begin(), lane.calls.end(), [&](const Prepared& prepared) {
    if (is_message(*prepared.call) && serves_messages(comm)) return false;
    return prepared.plan != nullptr ? prepared.plan->waits_for_ranks() : comm.real == nullptr;
  });
}

void find_servers(std::vector<Lane>& lanes) {
  for (Lane& lane : lanes) {
    const std::lock_guard lock(lane.comm->mutex);
    for (Prepared& prepared : lane.calls) find_server(*lane.comm, prepared);
  }
}

/// The last error of the lanes.
ncclResult_t result_of(const std::vector<Lane>& lanes) {
  ncclResult_t result = ncclSuccess;
  for (const Lane& lane : lanes) {
    if (lane.result != ncclSuccess) result = lane.result;
  }
  return result;
}

/// Does something for all lanes, each on a thread of its own: they wait for one another.
ncclResult_t on_threads(std::vector<Lane>& lanes, void (*work)(Lane&)) {
  std::vector<std::thread> threads;
  Diagnostics diagnostics;
  for (Lane& lane : lanes) {
    const auto without_memory = [&lane] {
      lane.result = ncclSystemError;
      lane.comm->communicator->abort("this rank does not have enough memory for a call");
      (void)fail(ncclSystemError, "there is not enough memory for a call");
    };
    threads.push_back(quiet_thread(
        "mscclc-nccl", [&lane, work] { work(lane); }, without_memory));
    if (has_started(threads.back(), "a rank's calls", diagnostics)) continue;
    lane.result = fail(ncclSystemError, "cannot make calls", diagnostics);
    lane.comm->communicator->abort(diagnostics);
  }
  for (std::thread& thread : threads) {
    if (thread.joinable()) thread.join();
  }
  return result_of(lanes);
}

ncclResult_t prepare_all(std::vector<Lane>& lanes) {
  const bool alone = lanes.size() == 1 || std::none_of(lanes.begin(), lanes.end(), may_wait);
  if (!alone) return on_threads(lanes, prepare_lane);
  for (Lane& lane : lanes) prepare_lane(lane);
  return result_of(lanes);
}

/// The profiler's events of a call that a plan serves. nullopt: there is no profiler.
std::optional<CallEvents> profile(Lane& lane, const Prepared& prepared) {
  Comm& comm = *lane.comm;
  if (comm.profiler == nullptr) return std::nullopt;
  const Call& call = *prepared.call;
  const bool captured = comm.device->is_capturing(stream_of(comm, call));
  if (lane.events == nullptr) lane.events = std::make_unique<GroupEvents>(*comm.profiler, captured);
  return std::make_optional<CallEvents>(*lane.events,
                                        ProfiledCall{.function = name(call.kind),
                                                     .is_message = is_message(call),
                                                     .kind = static_cast<size_t>(call.kind),
                                                     .send = call.send,
                                                     .receive = call.receive,
                                                     .count = call.count,
                                                     .datatype = nccl_name_of(call.type),
                                                     .root = call.root,
                                                     .stream = call.stream,
                                                     .captured = captured,
                                                     .plan = prepared.plan_name.c_str()});
}

/// A message in a graph runs in its way's order of calls, and must keep that of its communicator.
bool launch_in_order(Comm& comm, const Prepared& prepared, Diagnostics& diagnostics) {
  if (!is_message(*prepared.call)) return prepared.plan->launch(diagnostics);
  const StreamHandle stream = stream_of(comm, *prepared.call);
  return comm.order->follow(stream, diagnostics) && prepared.plan->launch(diagnostics) &&
         comm.order->follow(stream, diagnostics) && comm.order->put_last(stream, diagnostics);
}

ncclResult_t try_launch_plans(Lane& lane) {
  Comm& comm = *lane.comm;
  const std::lock_guard lock(comm.mutex);
  for (; lane.next < lane.calls.size() && lane.calls[lane.next].plan != nullptr; ++lane.next) {
    const Prepared& prepared = lane.calls[lane.next];
    const std::optional<CallEvents> events = profile(lane, prepared);
    if (prepared.route != nullptr) {
      const ncclResult_t result = launch_message(lane, prepared);
      if (result != ncclSuccess) return result;
      continue;
    }
    const ncclResult_t joined = join_messages(lane);
    if (joined != ncclSuccess) return joined;
    Diagnostics diagnostics;
    if (!launch_in_order(comm, prepared, diagnostics)) {
      return fail(name(prepared.call->kind), diagnostics);
    }
  }
  return lane.next == lane.calls.size() ? join_messages(lane) : ncclSuccess;
}

void launch_plans(Lane& lane) { lane.result = try_launch_plans(lane); }

ncclResult_t launch_plans(std::vector<Lane>& lanes) {
  const bool waits = std::any_of(lanes.begin(), lanes.end(), [](const Lane& lane) {
    return lane.comm->plans != nullptr && lane.comm->plans->launches_wait();
  });
  if (lanes.size() > 1 && waits) return on_threads(lanes, launch_plans);
  for (Lane& lane : lanes) {
    launch_plans(lane);
    if (lane.result != ncclSuccess) return lane.result;
  }
  return ncclSuccess;
}

ncclResult_t launch_real(Lane& lane) {
  Comm& comm = *lane.comm;
  const std::lock_guard lock(comm.mutex);
  for (; lane.next < lane.calls.size() && lane.calls[lane.next].plan == nullptr; ++lane.next) {
    const Call& call = *lane.calls[lane.next].call;
    lane.real_stream = stream_of(comm, call);
    lane.gave_real = true;
    // Messages go on together, whichever library serves them; another call waits for those before
    // it.
    ncclResult_t result = is_message(call) ? ncclSuccess : join_messages(lane);
    if (result == ncclSuccess) result = begin_real_call(comm, lane.real_stream);
    if (result == ncclSuccess) result = call_real(call);
    if (result != ncclSuccess && result != ncclInProgress) return result;
  }
  return ncclSuccess;
}

bool is_done(const Lane& lane) { return lane.next == lane.calls.size(); }
bool is_at_real(const Lane& lane) {
  return !is_done(lane) && lane.calls[lane.next].plan == nullptr;
}

/// The real NCCL's next calls of all communicators, as one group: one thread may drive several.
ncclResult_t launch_real(std::vector<Lane>& lanes) {
  const RealNccl& real = *real_nccl();
  const InsideReal inside;
  ncclResult_t result = real.GroupStart();
  for (Lane& lane : lanes) {
    if (result == ncclSuccess) result = launch_real(lane);
  }
  ncclResult_t ended = real.GroupEnd();
  for (Lane& lane : lanes) {
    const ncclComm_t made = lane.comm->real;
    if (made != nullptr) ended = settle(*lane.comm, made, ended);
    // NCCL joins the streams of a group, so the last one stands for all.
    if (!std::exchange(lane.gave_real, false) || ended != ncclSuccess) continue;
    const std::lock_guard lock(lane.comm->mutex);
    ended = end_real_call(*lane.comm, lane.real_stream);
    if (ended == ncclSuccess && is_done(lane)) ended = join_messages(lane);
  }
  return result == ncclSuccess ? ended : result;
}

ncclResult_t launch_all(std::vector<Lane>& lanes) {
  while (!std::all_of(lanes.begin(), lanes.end(), is_done)) {
    ncclResult_t result = launch_plans(lanes);
    const bool real = std::any_of(lanes.begin(), lanes.end(), is_at_real);
    if (result == ncclSuccess && real) result = launch_real(lanes);
    if (result != ncclSuccess) return result;
  }
  return ncclSuccess;
}

std::vector<StreamHandle> streams_of(const Lane& lane) {
  std::vector<StreamHandle> streams;
  for (const Prepared& prepared : lane.calls) {
    const StreamHandle stream = stream_of(*lane.comm, *prepared.call);
    if (std::find(streams.begin(), streams.end(), stream) == streams.end()) {
      streams.push_back(stream);
    }
  }
  return streams;
}

/// A group is a point where all its streams meet: each waits for all of the others.
ncclResult_t join_streams(std::vector<Lane>& lanes) {
  for (Lane& lane : lanes) {
    const std::vector<StreamHandle> streams = streams_of(lane);
    if (streams.size() < 2) continue;
    Comm& comm = *lane.comm;
    const std::lock_guard lock(comm.mutex);
    Diagnostics diagnostics;
    bool joined = true;
    // Round one brings the work of all to the last stream, round two from there to the others.
    for (const StreamHandle stream : streams) {
      joined = joined && comm.order->follow(stream, diagnostics) &&
               comm.order->put_last(stream, diagnostics);
    }
    for (const StreamHandle stream : streams) {
      joined = joined && comm.order->follow(stream, diagnostics);
    }
    if (!joined) return fail(ncclUnhandledCudaError, "cannot join a group's streams", diagnostics);
  }
  return ncclSuccess;
}

/// On the host callers cannot wait for stream 0: its calls have ended when the group has.
ncclResult_t finish_null_streams(std::vector<Lane>& lanes) {
  for (Lane& lane : lanes) {
    Comm& comm = *lane.comm;
    const bool waits =
        comm.on_host &&
        std::any_of(lane.calls.begin(), lane.calls.end(), [](const Prepared& prepared) {
          return prepared.plan != nullptr && prepared.call->stream == nullptr;
        });
    if (!waits) continue;
    const std::lock_guard lock(comm.mutex);
    Diagnostics diagnostics;
    if (!comm.communicator->synchronize(comm.null_stream, diagnostics) ||
        (comm.messages != nullptr && !comm.messages->check(diagnostics))) {
      return comm.async_error = fail("the calls of stream 0", diagnostics);
    }
  }
  return ncclSuccess;
}

/// A communicator's calls of one group are captured, or none is: its streams meet at the group's
/// begin and end, and what is captured cannot wait for what is not.
ncclResult_t check_captures(std::vector<Lane>& lanes) {
  for (Lane& lane : lanes) {
    if (lane.calls.size() < 2) continue;
    const std::vector<StreamHandle> streams = streams_of(lane);
    if (streams.size() < 2) continue;
    const std::lock_guard lock(lane.comm->mutex);
    const auto captured = std::count_if(streams.begin(), streams.end(), [&](StreamHandle stream) {
      return lane.comm->device->is_capturing(stream);
    });
    if (captured == 0 || captured == static_cast<ptrdiff_t>(streams.size())) continue;
    return fail(ncclInvalidUsage,
                fmt::format("of the {} streams of a communicator's calls in one group, {} are "
                            "captured in a graph: it must be all or none",
                            streams.size(), captured));
  }
  return ncclSuccess;
}

/// Plans get to know the windows of the group, once the real NCCL has made them. Ranks wait for one
/// another there, so each has a thread.
ncclResult_t finish_windows(std::vector<Lane>& lanes, ncclResult_t launched) {
  const auto registers = [](const Lane& lane) {
    return std::any_of(lane.calls.begin(), lane.calls.end(),
                       [](const Prepared& prepared) { return prepared.call->window.has_value(); });
  };
  if (std::none_of(lanes.begin(), lanes.end(), registers)) return launched;
  for (Lane& lane : lanes) lane.result = launched;
  if (lanes.size() > 1) return on_threads(lanes, share_windows);
  share_windows(lanes[0]);
  return launched;
}

/// Another thread, or the group itself, may have ended a communicator since the call was asked for.
ncclResult_t check_stages(const std::vector<Lane>& lanes) {
  for (const Lane& lane : lanes) {
    const ncclResult_t result = check_stage(*lane.comm, "at the end of its group a call finds");
    if (result != ncclSuccess) return result;
  }
  return ncclSuccess;
}

std::vector<Lane> make_lanes(std::vector<Call>& calls) {
  std::vector<Lane> lanes;
  for (Call& call : calls) {
    auto lane = std::find_if(lanes.begin(), lanes.end(),
                             [&](const Lane& l) { return l.comm == call.comm; });
    if (lane == lanes.end()) {
      lane = lanes.insert(lane, Lane());
      lane->comm = call.comm;
    }
    lane->calls.push_back({.call = &call, .plan = nullptr});
  }
  return lanes;
}

}  // namespace

const char* name(CallKind kind) {
  switch (kind) {
    case CallKind::allreduce:
      return "AllReduce";
    case CallKind::broadcast:
      return "Broadcast";
    case CallKind::reduce:
      return "Reduce";
    case CallKind::allgather:
      return "AllGather";
    case CallKind::reducescatter:
      return "ReduceScatter";
    case CallKind::alltoall:
      return "AlltoAll";
    case CallKind::gather:
      return "Gather";
    case CallKind::scatter:
      return "Scatter";
    case CallKind::send:
      return "Send";
    case CallKind::recv:
      return "Recv";
    case CallKind::other:
      return "a call of NCCL's own";
  }
  return "";
}

ncclResult_t make_calls(std::vector<Call>& calls) {
  std::vector<Lane> lanes = make_lanes(calls);
  ncclResult_t result = check_stages(lanes);
  if (result == ncclSuccess) result = check_captures(lanes);
  if (result == ncclSuccess) {
    find_servers(lanes);
    result = prepare_all(lanes);
  }
  if (result == ncclSuccess) result = join_streams(lanes);
  if (result == ncclSuccess) result = finish_windows(lanes, launch_all(lanes));
  if (result == ncclSuccess) result = join_streams(lanes);
  if (result == ncclSuccess) result = finish_null_streams(lanes);
  return result;
}

}  // namespace mscclc::nccl
