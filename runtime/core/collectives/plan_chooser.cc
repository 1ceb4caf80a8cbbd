#include "runtime/core/collectives/plan_chooser.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/api/device.h"
#include "runtime/api/nearest_plan.h"
#include "runtime/api/pick_for_job.h"

namespace mscclc {
namespace {

/// Of two limits. 0: any number.
uint32_t fewer_blocks(uint32_t a, uint32_t b) {
  return a == 0 || b == 0 ? std::max(a, b) : std::min(a, b);
}

}  // namespace

// Only what all ranks know alike.
PlanRequest PlanChooser::request(const PlannedCall& planned, bool capturing) const {
  PlanRequest request;
  request.call.kind = planned.kind;
  request.call.ranks = communicator_.size();
  request.call.bytes = message_bytes(planned, communicator_.size());
  request.call.dtype = planned.dtype;
  request.call.in_place = planned.place != CallPlace::apart;
  request.call.either_place = planned.place == CallPlace::either;
  request.call.root = planned.root;
  request.call.shift = planned.shift;
  request.call.accumulate = planned.accumulate;
  request.call.order = planned.order.value_or(job_.order);
  request.call.links = communicator_.worst_link();
  request.call.nodes = job_.where.nodes;
  request.call.op = planned.op;
  request.registered = planned.registered;
  request.call.captured = capturing;
  request.architecture = job_.where.architecture;
  request.multiprocessors = job_.where.multiprocessors;
  request.multicast = job_.where.multicast;
  request.most_blocks = fewer_blocks(job_.most_blocks, planned.most_blocks);
  request.tag = planned.tag;
  return request;
}

LoadedPlans::Need PlanChooser::need(const CollectiveCall& planned) const {
  return {message_bytes(planned, communicator_.size()), planned.dtype,
          planned.registered && !has_root(planned.kind)};
}

PlanChoice PlanChooser::choose(const PlannedCall& planned, bool capturing,
                               std::vector<PassedOver>* passed_over, Diagnostics& diagnostics) {
  const PlanRequest asked = request(planned, capturing);
  const auto most = [&](const PickedPlan& picked) {
    return loaded_.most_at_once(picked, need(planned));
  };
  JobChoice choice =
      pick_for_job(*provider_, asked, {piece_bytes_, most}, passed_over, diagnostics);
  // Whole elements of every row.
  return {std::move(choice.picked), choice.bytes / (asked.call.bytes / planned.count)};
}

/// Names what the call asks for, and the nearest plan.
void PlanChooser::report_no_plan(const PlannedCall& planned, bool capturing,
                                 Diagnostics& diagnostics) {
  const PlanRequest asked = request(planned, capturing);
  const bool ordered = order_matters(asked.call);
  // Where any plan of another library will do, it may be asked instead.
  const bool strict = ordered && asked.call.order > SumOrder::replicated;
  std::vector<Note> nearest = nearest_plan_notes(*provider_, asked);
  const std::string under =
      nearest.empty() ? "any order" : fmt::format("'{}'", name(asked.call.order));
  Diagnostic& error = diagnostics.error(
      strict ? "no-plan-in-order" : "no-plan", {},
      fmt::format("no plan serves {} of {} bytes, '{}', for {} ranks{}{}", name(planned.kind),
                  asked.call.bytes, info(planned.dtype).name, communicator_.size(),
                  job_.where.nodes == 1 ? "" : " of several nodes",
                  ordered ? ", under " + under : ""));
  error.notes = std::move(nearest);
  if (!error.notes.empty()) return;
  if (job_.where.nodes == 0) {
    error.notes.push_back(
        {fmt::format("the nodes' ranks are {}: with as many ranks on each node, numbered node "
                     "by node, there are more plans",
                     nodes_text(communicator_.nodes()))});
  }
  if (job_.where.nodes != 1) {
    error.notes.push_back(
        {"what would serve it: a plan of your own whose channels between "
         "nodes are ports, registered or in MSCCLC_PLAN_PATH"});
  }
}

PlanChoice PlanChooser::pick(const PlannedCall& planned, StreamHandle stream,
                             Diagnostics& diagnostics) {
  Diagnostics problems;
  const bool capturing = communicator_.device().is_capturing(stream);
  PlanChoice choice = choose(planned, capturing, nullptr, problems);
  for (const Diagnostic& d : problems.all()) diagnostics.add(d);
  if (choice.picked == nullptr && !problems.has_errors()) {
    report_no_plan(planned, capturing, diagnostics);
  }
  return choice;
}

}  // namespace mscclc
