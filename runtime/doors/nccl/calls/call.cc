#include "runtime/doors/nccl/calls/call.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "runtime/doors/nccl/abi/types.h"
#include "runtime/doors/nccl/backends/report.h"
#include "runtime/doors/nccl/calls/coll_config.h"
#include "runtime/doors/nccl/calls/comm_calls.h"
#include "runtime/doors/nccl/calls/compare.h"
#include "runtime/doors/nccl/calls/message_calls.h"
#include "runtime/doors/nccl/calls/real_calls.h"
#include "runtime/doors/nccl/calls/scaled_call.h"
#include "runtime/doors/nccl/calls/window_calls.h"
#include "runtime/support/process/rank_steps.h"

namespace mscclc::nccl {
namespace {

/// nullopt: plans could not serve it.
std::optional<CollectiveCall> for_plans(const NcclCall& call) {
  if (!is_collective(call) || call.reduction != nullptr || asks_for_algorithm(call)) {
    return std::nullopt;
  }
  return call;
}

/// What the sums of a call must keep to.
SumOrder order_of(const Comm& comm, const NcclCall& call) {
  return call.order.value_or(comm.order_of_sums);
}

/// Does NVIDIA's library serve a call without thread blocks, where the CTA policy wants none? From
/// 2.28 on its copy engines do what adds nothing up, on one node, if both buffers lie in symmetric
/// windows (`in_windows`).
bool needs_no_blocks_in_nccl(const Comm& comm, const NcclCall& call, bool in_windows) {
  constexpr int kFirstVersion = 22800;
  const bool wanted = call.cta_policy ? is_zero_cta(*call.cta_policy) : comm.facts.no_blocks;
  const bool copies = info(call.kind).gets_parts_of_all();
  return wanted && copies && comm.facts.has_real && real_nccl()->version >= kFirstVersion &&
         comm.facts.nodes == 1 && in_windows;
}

/// Finds out what serves a call, once. REQUIRES, as prepare(): the communicator's mutex is held.
void find_server(Comm& comm, Prepared& prepared) {
  const NcclCall& call = *prepared.call;
  if (moves_nothing(call)) return;
  if (is_message(call) && serves_messages(comm)) return;  // message_calls.h
  const StreamHandle stream = stream_of(comm, call);
  auto wanted = for_plans(call);
  if (comm.ranks == 1 && wanted) {
    prepared.server = "a copy";
    prepared.plan = std::make_unique<Copy>(comm, stream, call.input, call.output,
                                           call.count * info(wanted->dtype).bytes);
    return;
  }
  prepared.server = !comm.why_real.empty()  ? comm.why_real
                    : comm.plans == nullptr ? "there are no plans"
                                            : "plans do no such calls";
  if (!wanted || comm.plans == nullptr) return;
  wanted->registered = lies_in_windows(comm, call);
  if (needs_no_blocks_in_nccl(comm, call, wanted->registered)) {
    prepared.server = "its CTA policy is zero, and NCCL's copy engines take no thread blocks";
    return;
  }
  const bool logged =
      informs(Subsystem::coll) || comm.requires_plans || order_of(comm, call) != kDefaultOrder;
  std::string* const server = logged ? &prepared.server : nullptr;
  prepared.plan =
      scales_first(*wanted)
          ? serve_scaled(comm, *wanted, stream, server)
          : comm.plans->serve(*wanted, stream, comm.device->is_capturing(stream), server);
}

/// NCCL computes each sum once and sends it on, so all ranks get the same bits, but in an order of
/// its own: what must keep to another one is not left to it.
bool may_be_left_to_nccl(const Comm& comm, const NcclCall& call) {
  const SumOrder order = order_of(comm, call);
  if (!is_collective(call) || order == kDefaultOrder) return true;
  return !order_matters({.kind = call.kind,
                         .ranks = comm.ranks,
                         .dtype = call.dtype,
                         .op = call.reduction != nullptr ? ReduceOp::sum : call.op,
                         .order = order});
}

ncclResult_t leave_to_nccl(Comm& comm, const Prepared& prepared) {
  const NcclCall& call = *prepared.call;
  if (!may_be_left_to_nccl(comm, call)) {
    return fail(
        ncclInvalidUsage,
        fmt::format("{}: no plan serves it ({}), and NCCL does not keep to '{}', which {} "
                    "asks for",
                    name(call), prepared.server, name(order_of(comm, call)), call.asks_for_order));
  }
  return prepare_real(comm, call, prepared.server);
}

ncclResult_t prepare(Comm& comm, Prepared& prepared) {
  const NcclCall& call = *prepared.call;
  if (prepared.plan == nullptr) return leave_to_nccl(comm, prepared);
  if (call.launch_completion != nullptr && comm.on_host) {
    return fail(ncclInvalidUsage,
                fmt::format("{}: its launchCompletionEvent is CUDA's, and ranks run on processors",
                            name(call)));
  }
  const auto result = prepare_plan(comm, call, *prepared.plan, prepared.server);
  if (!result) {
    prepared.plan.reset();
    return leave_to_nccl(comm, prepared);
  }
  if (*result != ncclSuccess) return *result;
  if (comm.profiler != nullptr) prepared.plan_name = prepared.plan->plan();
  say_server(comm, call, prepared.server);
  return ncclSuccess;
}

/// MSCCLC_CHECK_CALLS: with the other ranks. After it, what moves nothing is done.
ncclResult_t compare(CallsOfComm& one) {
  if (!one.comm->compares_calls) return ncclSuccess;
  std::vector<const NcclCall*> calls;
  for (const Prepared& prepared : one.calls) calls.push_back(prepared.call);
  const ncclResult_t result = compare_calls(*one.comm, calls);
  std::erase_if(one.calls, [](const Prepared& prepared) { return moves_nothing(*prepared.call); });
  return result;
}

ncclResult_t try_prepare(CallsOfComm& one) {
  const std::lock_guard lock(one.comm->mutex);
  ncclResult_t result = compare(one);
  if (result == ncclSuccess) result = settle_own_messages(one);
  if (result != ncclSuccess) return result;
  MessagePreparation messages(one);
  for (Prepared& prepared : one.calls) {
    if (is_message(*prepared.call) && serves_messages(*one.comm)) continue;
    result = prepare(*one.comm, prepared);
    if (result != ncclSuccess) return result;
  }
  result = messages.finish();
  sort_messages(one);
  return result;
}

/// True if preparing may wait for other ranks, which must not happen one rank after the other.
bool may_wait(CallsOfComm& one) {
  Comm& comm = *one.comm;
  const std::lock_guard lock(comm.mutex);
  if (comm.compares_calls || messages_may_wait(one)) return true;
  return std::any_of(one.calls.begin(), one.calls.end(), [&](const Prepared& prepared) {
    if (is_message(*prepared.call) && serves_messages(comm)) return false;
    return prepared.plan != nullptr ? prepared.plan->waits_for_ranks() : comm.real == nullptr;
  });
}

void find_servers(std::vector<CallsOfComm>& all) {
  for (CallsOfComm& one : all) {
    const std::lock_guard lock(one.comm->mutex);
    for (Prepared& prepared : one.calls) find_server(*one.comm, prepared);
  }
}

/// What is done for each communicator of a group: its result is CallsOfComm::result.
struct GroupStep {
  static constexpr const char *kThread = "mscclc-nccl", *kWhat = "a rank's calls";
  ncclResult_t (*work)(CallsOfComm&);

  bool run(CallsOfComm& one) const {
    one.result = work(one);
    return one.result == ncclSuccess;
  }
  void without_memory(CallsOfComm& one) const {
    one.result = ncclSystemError;
    one.comm->communicator->abort("this rank does not have enough memory for a call");
    (void)fail(ncclSystemError, "there is not enough memory for a call");
  }
  void without_thread(CallsOfComm& one, Diagnostics& why) const {
    one.result = fail(ncclSystemError, "cannot make calls", why);
    one.comm->communicator->abort(why);
  }
};

/// The last error. `wait`: communicators may wait for one another.
ncclResult_t for_all(std::vector<CallsOfComm>& all, bool wait, ncclResult_t (*work)(CallsOfComm&)) {
  if (do_for_ranks(all, wait, GroupStep{work})) return ncclSuccess;
  const auto failed = std::find_if(
      all.rbegin(), all.rend(), [](const CallsOfComm& one) { return one.result != ncclSuccess; });
  return failed->result;
}

ncclResult_t prepare_all(std::vector<CallsOfComm>& all) {
  const bool wait = all.size() > 1 && std::any_of(all.begin(), all.end(), may_wait);
  return for_all(all, wait, try_prepare);
}

/// The profiler's events of a call that a plan serves. nullopt: there is no profiler.
std::optional<CallEvents> profile(CallsOfComm& one, const Prepared& prepared) {
  Comm& comm = *one.comm;
  if (comm.profiler == nullptr) return std::nullopt;
  const NcclCall& call = *prepared.call;
  const bool captured = comm.device->is_capturing(stream_of(comm, call));
  if (one.events == nullptr) one.events = std::make_unique<GroupEvents>(*comm.profiler, captured);
  return std::make_optional<CallEvents>(*one.events,
                                        ProfiledCall{.function = name(call),
                                                     .is_message = is_message(call),
                                                     .kind = static_cast<size_t>(call.kind),
                                                     .send = call.input,
                                                     .receive = call.output,
                                                     .count = call.count,
                                                     .datatype = nccl_name_of(call.dtype),
                                                     .root = root_of(call),
                                                     .stream = call.stream,
                                                     .captured = captured,
                                                     .plan = prepared.plan_name.c_str(),
                                                     .tag = call.profiler_tag});
}

/// A message in a graph runs in its way's order of calls, and must keep that of its communicator.
bool launch_in_order(Comm& comm, const Prepared& prepared, Diagnostics& diagnostics) {
  if (!is_message(*prepared.call)) return prepared.plan->launch(diagnostics);
  const StreamHandle stream = stream_of(comm, *prepared.call);
  return comm.order->follow(stream, diagnostics) && prepared.plan->launch(diagnostics) &&
         comm.order->follow(stream, diagnostics) && comm.order->put_last(stream, diagnostics);
}

/// NCCL lets what waits for the event begin with the last block of its kernel, at best; here it
/// begins when the call has ended.
bool record_launch(Comm& comm, const Prepared& prepared, Diagnostics& diagnostics) {
  const NcclCall& call = *prepared.call;
  return call.launch_completion == nullptr ||
         comm.device->record_event(call.launch_completion, stream_of(comm, call), diagnostics);
}

bool is_done(const CallsOfComm& one) { return one.next == one.calls.size(); }
bool is_at_real(const CallsOfComm& one) {
  return !is_done(one) && one.calls[one.next].plan == nullptr;
}
bool is_at_plan(const CallsOfComm& one) { return !is_done(one) && !is_at_real(one); }

ncclResult_t launch_plan(CallsOfComm& one, const Prepared& prepared) {
  Comm& comm = *one.comm;
  const std::optional<CallEvents> events = profile(one, prepared);
  if (prepared.route != nullptr) return launch_message(one, prepared);
  const ncclResult_t joined = join_messages(one);
  if (joined != ncclSuccess) return joined;
  Diagnostics diagnostics;
  const bool launched =
      launch_in_order(comm, prepared, diagnostics) && record_launch(comm, prepared, diagnostics);
  return launched ? ncclSuccess : fail(name(*prepared.call), diagnostics);
}

/// The next call, if a plan serves it.
ncclResult_t launch_next(CallsOfComm& one) {
  const std::lock_guard lock(one.comm->mutex);
  if (is_at_plan(one)) {
    const ncclResult_t result = launch_plan(one, one.calls[one.next]);
    if (result != ncclSuccess) return result;
    ++one.next;
  }
  return is_done(one) ? join_messages(one) : ncclSuccess;
}

/// All next calls that plans serve.
ncclResult_t launch_on(CallsOfComm& one) {
  ncclResult_t result = launch_next(one);
  while (result == ncclSuccess && is_at_plan(one)) result = launch_next(one);
  return result;
}

// The next call of every communicator, then the one after it of every one: a launch may wait for
// the calls before it (StreamChain, CopyCalls), and these for ranks that the same thread drives.
ncclResult_t launch_plans(std::vector<CallsOfComm>& all) {
  const bool wait = all.size() > 1 && std::any_of(all.begin(), all.end(), [](const auto& one) {
                      return one.comm->plans != nullptr && one.comm->plans->launches_wait();
                    });
  if (wait) return for_all(all, true, launch_on);
  ncclResult_t result = for_all(all, false, launch_next);
  while (result == ncclSuccess && std::any_of(all.begin(), all.end(), is_at_plan)) {
    result = for_all(all, false, launch_next);
  }
  return result;
}

ncclResult_t launch_real(CallsOfComm& one) {
  Comm& comm = *one.comm;
  const std::lock_guard lock(comm.mutex);
  // What no caller waits for may be aborted by its caller meanwhile.
  if (!comm.blocking && is_at_real(one)) {
    const ncclResult_t entered = enter_real(comm);
    if (entered != ncclSuccess) return entered;
    one.in_real = true;
  }
  for (; is_at_real(one); ++one.next) {
    const NcclCall& call = *one.calls[one.next].call;
    one.real_stream = stream_of(comm, call);
    one.gave_real = true;
    // Messages go on together, whichever library serves them; another call waits for those before
    // it.
    ncclResult_t result = is_message(call) ? ncclSuccess : join_messages(one);
    if (result == ncclSuccess) result = begin_real_call(comm, one.real_stream);
    if (result == ncclSuccess) result = call_real(call);
    if (result != ncclSuccess && result != ncclInProgress) return result;
  }
  return ncclSuccess;
}

/// What follows a group of the real NCCL, which has ended with this result: what is still in
/// progress is so for each communicator by itself.
ncclResult_t end_real(CallsOfComm& one, ncclResult_t ended) {
  const ncclComm_t made = one.comm->real;
  if (made != nullptr) ended = settle(*one.comm, made, ended);
  // NCCL joins the streams of a group, so the last one stands for all.
  if (!std::exchange(one.gave_real, false) || ended != ncclSuccess) return ended;
  const std::lock_guard lock(one.comm->mutex);
  ended = end_real_call(*one.comm, one.real_stream);
  return ended == ncclSuccess && is_done(one) ? join_messages(one) : ended;
}

void leave_real_calls(CallsOfComm& one) {
  if (std::exchange(one.in_real, false)) leave_real(*one.comm);
}

/// Leaves them also where there is no memory for a call, which ends the thread.
struct RealCalls {
  std::vector<CallsOfComm>& all;
  ~RealCalls() { std::ranges::for_each(all, leave_real_calls); }
};

/// The real NCCL's next calls of all communicators, as one group: one thread may drive several.
ncclResult_t launch_real(std::vector<CallsOfComm>& all) {
  const RealCalls calls{all};
  const RealNccl& real = *real_nccl();
  const InsideReal inside;
  ncclResult_t result = real.GroupStart();
  for (CallsOfComm& one : all) {
    if (result == ncclSuccess) result = launch_real(one);
  }
  const ncclResult_t ended = real.GroupEnd();
  for (CallsOfComm& one : all) {
    leave_real_calls(one);
    const ncclResult_t settled = end_real(one, ended);
    if (result == ncclSuccess) result = settled;
  }
  return result;
}

ncclResult_t launch_all(std::vector<CallsOfComm>& all) {
  while (!std::all_of(all.begin(), all.end(), is_done)) {
    ncclResult_t result = launch_plans(all);
    const bool real = std::any_of(all.begin(), all.end(), is_at_real);
    if (result == ncclSuccess && real) result = launch_real(all);
    if (result != ncclSuccess) return result;
  }
  return ncclSuccess;
}

std::vector<StreamHandle> streams_of(const CallsOfComm& one) {
  std::vector<StreamHandle> streams;
  for (const Prepared& prepared : one.calls) {
    if (moves_nothing(*prepared.call)) continue;
    const StreamHandle stream = stream_of(*one.comm, *prepared.call);
    if (std::find(streams.begin(), streams.end(), stream) == streams.end()) {
      streams.push_back(stream);
    }
  }
  return streams;
}

/// A group is a point where all its streams meet: each waits for all of the others.
ncclResult_t join_streams(std::vector<CallsOfComm>& all) {
  for (CallsOfComm& one : all) {
    const std::vector<StreamHandle> streams = streams_of(one);
    if (streams.size() < 2) continue;
    Comm& comm = *one.comm;
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

/// True of calls on stream 0 of the host.
bool ends_with_group(const CallsOfComm& one) {
  return one.comm->on_host &&
         std::any_of(one.calls.begin(), one.calls.end(), [](const Prepared& prepared) {
           return prepared.plan != nullptr && prepared.call->stream == nullptr;
         });
}

/// On the host callers cannot wait for stream 0: its calls have ended when the group has, also
/// those that were queued before a launch failed. The first error is what comes of it.
ncclResult_t finish_null_streams(std::vector<CallsOfComm>& all, ncclResult_t result) {
  for (CallsOfComm& one : all) {
    Comm& comm = *one.comm;
    if (!ends_with_group(one)) continue;
    const std::lock_guard lock(comm.mutex);
    Diagnostics diagnostics;
    const bool ended = comm.communicator->synchronize(comm.null_stream, diagnostics) &&
                       (comm.messages == nullptr || comm.messages->check(diagnostics));
    if (!ended && result == ncclSuccess) {
      result = fail("the calls of stream 0", diagnostics);
      const std::lock_guard tables(comm.tables);
      if (comm.unwaited == 0) comm.async_error = result;  // else end_unwaited() says it
    }
  }
  return result;
}

/// A communicator's calls of one group are captured, or none is: its streams meet at the group's
/// begin and end, and what is captured cannot wait for what is not.
ncclResult_t check_captures(std::vector<CallsOfComm>& all) {
  for (CallsOfComm& one : all) {
    if (one.calls.size() < 2) continue;
    const std::vector<StreamHandle> streams = streams_of(one);
    if (streams.size() < 2) continue;
    const std::lock_guard lock(one.comm->mutex);
    const auto captured = std::count_if(streams.begin(), streams.end(), [&](StreamHandle stream) {
      return one.comm->device->is_capturing(stream);
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
ncclResult_t finish_windows(std::vector<CallsOfComm>& all, ncclResult_t launched) {
  const auto registers = [](const CallsOfComm& one) {
    return std::any_of(one.calls.begin(), one.calls.end(),
                       [](const Prepared& prepared) { return prepared.call->window.has_value(); });
  };
  if (std::none_of(all.begin(), all.end(), registers)) return launched;
  for (CallsOfComm& one : all) one.result = launched;
  return for_all(all, true, share_windows);
}

/// Another thread, or the group itself, may have ended a communicator since the call was asked for:
/// a wrong use, as no argument was wrong then.
ncclResult_t check_stages(const std::vector<CallsOfComm>& all) {
  for (const CallsOfComm& one : all) {
    const ncclResult_t result = check_stage(*one.comm, "at the end of its group a call finds");
    if (result == ncclSuccess) continue;
    return one.comm->stage == Stage::finalized ? ncclInvalidUsage : result;
  }
  return ncclSuccess;
}

std::vector<CallsOfComm> by_comm(std::vector<NcclCall>& calls) {
  std::vector<CallsOfComm> all;
  for (NcclCall& call : calls) {
    auto one = std::find_if(all.begin(), all.end(),
                            [&](const CallsOfComm& l) { return l.comm == call.comm; });
    if (one == all.end()) {
      one = all.insert(one, CallsOfComm());
      one->comm = call.comm;
    }
    one->calls.push_back({.call = &call, .plan = nullptr});
  }
  return all;
}

/// The calls of one group, in their order, and by communicator.
struct CallsOfGroup {
  std::vector<NcclCall> calls;
  std::vector<CallsOfComm> all;  ///< which refer to `calls`
};

/// Once it is known what serves them.
ncclResult_t make_now(std::vector<CallsOfComm>& all) {
  ncclResult_t result = prepare_all(all);
  if (result == ncclSuccess) result = join_streams(all);
  if (result != ncclSuccess) return result;
  result = finish_windows(all, launch_all(all));
  if (result == ncclSuccess) result = join_streams(all);
  return finish_null_streams(all, result);
}

/// True if no caller waits for these communicators, and making the calls may: for other ranks, or
/// for the real NCCL.
bool goes_on_alone(std::vector<CallsOfComm>& all) {
  if (std::any_of(all.begin(), all.end(), [](const auto& one) { return one.comm->blocking; })) {
    return false;
  }
  return std::any_of(all.begin(), all.end(), [](CallsOfComm& one) {
    const Comm& comm = *one.comm;
    const bool launches_wait = comm.plans != nullptr && comm.plans->launches_wait();
    return launches_wait || may_wait(one) || ends_with_group(one) ||
           std::any_of(one.calls.begin(), one.calls.end(),
                       [](const Prepared& prepared) { return prepared.plan == nullptr; });
  });
}

/// Makes the calls, as `work` says, on a thread of their own. The result comes with
/// ncclCommGetAsyncError().
ncclResult_t make_unwaited(const std::shared_ptr<CallsOfGroup>& group,
                           const std::function<ncclResult_t()>& work) {
  std::vector<std::pair<CommPointer, Stage>> comms;
  for (const CallsOfComm& one : group->all) comms.emplace_back(one.comm, Stage::ready);
  for (auto& [comm, begun_at] : comms) begun_at = begin_unwaited(*comm);
  // The group goes first: once its communicators are done, callers come with the next one.
  const auto end = [group, comms](ncclResult_t result) {
    group->all.clear();
    group->calls.clear();
    for (const auto& [comm, begun_at] : comms) end_unwaited(*comm, begun_at, result);
  };
  const auto make = [work, end, first = comms.front().first] {
    Diagnostics diagnostics;
    const bool bound = first->device->bind_thread(diagnostics);
    end(bound ? work() : fail(ncclUnhandledCudaError, "a call", diagnostics));
  };
  std::thread thread = quiet_thread("mscclc-nccl", make, [end] {
    end(fail(ncclSystemError, "there is not enough memory for a call"));
  });
  Diagnostics diagnostics;
  if (has_started(thread, "a call", diagnostics)) {
    thread.detach();
    return ncclInProgress;
  }
  const ncclResult_t result = fail(ncclSystemError, "cannot make calls", diagnostics);
  end(result);
  return result;
}

std::shared_ptr<CallsOfGroup> group_of(std::vector<NcclCall> calls) {
  const auto group = std::make_shared<CallsOfGroup>(CallsOfGroup{std::move(calls), {}});
  group->all = by_comm(group->calls);
  return group;
}

ncclResult_t check(std::vector<CallsOfComm>& all) {
  const ncclResult_t result = check_stages(all);
  return result == ncclSuccess ? check_captures(all) : result;
}

}  // namespace

ncclResult_t make_calls(std::vector<NcclCall> calls) {
  const auto group = group_of(std::move(calls));
  const ncclResult_t result = check(group->all);
  if (result != ncclSuccess) return result;
  find_servers(group->all);
  const auto make = [group] { return make_now(group->all); };
  return goes_on_alone(group->all) ? make_unwaited(group, make) : make();
}

ncclResult_t make_calls_after(const UnwaitedWork& work, std::vector<NcclCall> calls) {
  const auto group = group_of(std::move(calls));
  const ncclResult_t result = check(group->all);
  if (result != ncclSuccess) return result;
  work.begin();
  return make_unwaited(group, [group, run = work.run] {
    const ncclResult_t done = run();
    if (done != ncclSuccess) return done;
    find_servers(group->all);
    return make_now(group->all);
  });
}

}  // namespace mscclc::nccl
