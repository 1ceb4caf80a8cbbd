#include "runtime/doors/nccl/calls/message_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "runtime/doors/nccl/backends/report.h"
#include "runtime/support/process/quiet_thread.h"

namespace mscclc::nccl {
namespace {

uint64_t bytes_of_message(const NcclCall& call) { return call.count * info(call.dtype).bytes; }

bool is_to_itself(const Comm& comm, const NcclCall& call) {
  return is_message(call) && call.root == comm.rank;
}

/// The message as its two ranks' broadcast. The sender's buffer is the plan's output, too, which in
/// place is not written.
CollectiveCall as_broadcast(const NcclCall& call) {
  CollectiveCall made = call;
  made.kind = CollectiveKind::broadcast;
  made.root = 0;
  if (sends(call)) made.output = const_cast<void*>(call.input);
  return made;
}

/// The communicator's messages by their routes.
std::vector<RouteCalls> by_route(CallsOfComm& one) {
  Comm& comm = *one.comm;
  std::vector<RouteCalls> routes;
  for (Prepared& prepared : one.calls) {
    const NcclCall& call = *prepared.call;
    if (!is_message(call) || prepared.plan != nullptr || call.count == 0) continue;
    const uint32_t from = sends(call) ? comm.rank : call.root;
    const uint32_t to = sends(call) ? call.root : comm.rank;
    auto route = std::find_if(routes.begin(), routes.end(),
                              [&](const RouteCalls& w) { return w.from == from && w.to == to; });
    if (route == routes.end()) {
      const bool capturing = comm.device->is_capturing(stream_of(comm, call));
      route = routes.insert(route, {.from = from, .to = to, .calls = {}, .capturing = capturing});
    }
    route->calls.push_back(&prepared);
  }
  return routes;
}

/// In a graph the messages of a group would wait for one another, one after the other on the
/// caller's stream; so NCCL has them, if it is there. On all ranks, or on none.
bool leaves_to_real(const Comm& comm, const RouteCalls& route) {
  return route.capturing && comm.real != nullptr;
}

/// False: no plan serves the message.
bool find_plan(const Comm& comm, const RouteCalls& calls, PeerRoute& route, Prepared& prepared) {
  if (prepared.found != nullptr) return true;
  const NcclCall& call = *prepared.call;
  prepared.server = "there are no plans";
  if (route.plans == nullptr) return false;
  const bool logged = informs(Subsystem::coll) || comm.requires_plans;
  const StreamHandle stream = calls.capturing ? stream_of(comm, call) : route.stream;
  prepared.found = route.plans->serve(as_broadcast(call), stream, calls.capturing,
                                      logged ? &prepared.server : nullptr);
  return prepared.found != nullptr;
}

ncclResult_t prepare_message(Comm& comm, const RouteCalls& calls, PeerRoute& route,
                             Prepared& prepared) {
  const NcclCall& call = *prepared.call;
  if (!find_plan(comm, calls, route, prepared)) return prepare_real(comm, call, prepared.server);
  const auto result = prepare_plan(comm, call, *prepared.found, prepared.server);
  if (!result) return prepare_real(comm, call, prepared.server);
  if (*result != ncclSuccess) return *result;
  prepared.plan = std::move(prepared.found);
  if (!calls.capturing) prepared.route = &route;
  if (comm.profiler != nullptr) prepared.plan_name = prepared.plan->plan();
  say_server(comm, call, prepared.server);
  return ncclSuccess;
}

ncclResult_t prepare_route(Comm& comm, const RouteCalls& calls) {
  PeerRoute* route = nullptr;
  if (!leaves_to_real(comm, calls)) {
    Diagnostics diagnostics;
    route = comm.messages->make(calls.from, calls.to, diagnostics);
    if (route == nullptr) {
      return fail(fmt::format("nccl{}: no peer", name(*calls.calls[0]->call)), diagnostics);
    }
  }
  for (Prepared* prepared : calls.calls) {
    const ncclResult_t result = route == nullptr
                                    ? prepare_real(comm, *prepared->call, "a message in a graph")
                                    : prepare_message(comm, calls, *route, *prepared);
    if (result != ncclSuccess) return result;
  }
  return ncclSuccess;
}

bool waits(const Comm& comm, const RouteCalls& calls) {
  if (leaves_to_real(comm, calls)) return false;
  PeerRoute* const route = comm.messages->find(calls.from, calls.to);
  return route == nullptr ||
         std::any_of(calls.calls.begin(), calls.calls.end(), [&](Prepared* prepared) {
           return find_plan(comm, calls, *route, *prepared) && prepared->found->waits_for_ranks();
         });
}

/// The chain of streams meets those of new routes before anything of the group is launched: the
/// first time it may wait for what was launched by then.
ncclResult_t order_new_routes(CallsOfComm& one) {
  Comm& comm = *one.comm;
  Diagnostics diagnostics;
  for (const Prepared& prepared : one.calls) {
    if (prepared.route == nullptr || std::exchange(prepared.route->is_ordered, true)) continue;
    const StreamHandle stream = stream_of(comm, *prepared.call);
    if (!comm.order->follow(stream, diagnostics) || !comm.order->put_last(stream, diagnostics) ||
        !comm.order->follow(prepared.route->stream, diagnostics)) {
      return fail(ncclUnhandledCudaError, "cannot order messages", diagnostics);
    }
  }
  return ncclSuccess;
}

}  // namespace

bool serves_messages(const Comm& comm) { return comm.ranks == 1 || comm.messages != nullptr; }

// The nth send has the nth receive; the later of the two is where the copy stands.
ncclResult_t settle_own_messages(CallsOfComm& one) {
  Comm& comm = *one.comm;
  if (!serves_messages(comm)) return ncclSuccess;
  std::erase_if(one.calls, [](const Prepared& prepared) {
    return is_message(*prepared.call) && prepared.call->count == 0;
  });
  std::deque<Prepared*> open;  // halves without the other, all of one kind
  for (Prepared& prepared : one.calls) {
    if (!is_to_itself(comm, *prepared.call)) continue;
    if (open.empty() || open.front()->call->side == prepared.call->side) {
      open.push_back(&prepared);
      continue;
    }
    Prepared& other = *open.front();
    open.pop_front();
    const bool sends_now = sends(*prepared.call);
    const NcclCall& send = sends_now ? *prepared.call : *other.call;
    const NcclCall& receive = sends_now ? *other.call : *prepared.call;
    const uint64_t bytes = bytes_of_message(send);
    if (bytes != bytes_of_message(receive)) {
      return fail(ncclInvalidUsage, fmt::format("rank {} sends {} bytes to itself, and receives {}",
                                                comm.rank, bytes, bytes_of_message(receive)));
    }
    prepared.plan = std::make_unique<Copy>(comm, stream_of(comm, *prepared.call), send.input,
                                           receive.output, bytes);
    say_server(comm, *prepared.call, "a copy");
    other.call = nullptr;
  }
  if (!open.empty()) {
    return fail(ncclInvalidUsage,
                fmt::format("{}: rank {} has no matching call to itself in the same group",
                            name(*open.front()->call), comm.rank));
  }
  std::erase_if(one.calls, [](const Prepared& prepared) { return prepared.call == nullptr; });
  return ncclSuccess;
}

bool messages_may_wait(CallsOfComm& one) {
  if (one.comm->messages == nullptr) return false;
  const std::vector<RouteCalls> routes = by_route(one);
  return std::any_of(routes.begin(), routes.end(), [&](const RouteCalls& route) {
    const bool to_itself = route.from == route.to;
    return !to_itself && waits(*one.comm, route);
  });
}

MessagePreparation::MessagePreparation(CallsOfComm& one) : own_(one) {
  Comm& comm = *one.comm;
  if (comm.messages == nullptr) return;
  routes_ = by_route(one);
  const bool on_threads = std::any_of(routes_.begin(), routes_.end(),
                                      [&](const RouteCalls& route) { return waits(comm, route); });
  for (RouteCalls& route : routes_) {
    if (!on_threads) {
      route.result = prepare_route(comm, route);
      continue;
    }
    Diagnostics diagnostics;
    std::thread thread = quiet_thread(
        "mscclc-nccl", [&comm, &route] { route.result = prepare_route(comm, route); },
        [&comm, &route] {
          route.result = ncclSystemError;
          comm.messages->abort("this rank does not have enough memory for a message");
          (void)fail(ncclSystemError, "there is not enough memory for a message");
        });
    if (has_started(thread, "a message", diagnostics)) {
      threads_.push_back(std::move(thread));
    } else {
      route.result = fail(ncclSystemError, "cannot send or receive", diagnostics);
    }
  }
}

MessagePreparation::~MessagePreparation() { join(); }

void MessagePreparation::join() {
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

ncclResult_t MessagePreparation::finish() {
  join();
  for (const RouteCalls& route : routes_) {
    if (route.result != ncclSuccess) return route.result;
  }
  return routes_.empty() ? ncclSuccess : order_new_routes(own_);
}

void sort_messages(CallsOfComm& one) {
  const auto message = [](const Prepared& prepared) { return is_message(*prepared.call); };
  const auto place = [](const Prepared& prepared) {
    return prepared.plan == nullptr ? 2 : prepared.route != nullptr ? 1 : 0;
  };
  const auto ends = [](const Prepared& prepared) {
    return prepared.route == nullptr ? std::pair(0u, 0u)
                                     : std::pair(prepared.route->from, prepared.route->to);
  };
  for (auto first = one.calls.begin(); first != one.calls.end();) {
    first = std::find_if(first, one.calls.end(), message);
    const auto last = std::find_if_not(first, one.calls.end(), message);
    std::stable_sort(first, last, [&](const Prepared& a, const Prepared& b) {
      return std::pair(place(a), ends(a)) < std::pair(place(b), ends(b));
    });
    first = last;
  }
}

ncclResult_t launch_message(CallsOfComm& one, const Prepared& message) {
  Comm& comm = *one.comm;
  const StreamHandle stream = stream_of(comm, *message.call);
  Diagnostics diagnostics;
  if (comm.order->follow(stream, diagnostics) && comm.order->put_last(stream, diagnostics) &&
      comm.order->follow(message.route->stream, diagnostics) && message.plan->launch(diagnostics)) {
    one.under_way.push_back(&message);
    return ncclSuccess;
  }
  return fail(name(*message.call), diagnostics);
}

ncclResult_t join_messages(CallsOfComm& one) {
  Comm& comm = *one.comm;
  Diagnostics diagnostics;
  bool joined = true;
  const auto put_last = [&](StreamHandle stream) {
    joined = joined && comm.order->follow(stream, diagnostics) &&
             comm.order->put_last(stream, diagnostics);
  };
  const auto under_way = std::exchange(one.under_way, {});
  for (const Prepared* message : under_way) put_last(message->route->stream);
  for (const Prepared* message : under_way) put_last(stream_of(comm, *message->call));
  return joined ? ncclSuccess
                : fail(ncclUnhandledCudaError, "cannot wait for messages", diagnostics);
}

}  // namespace mscclc::nccl
