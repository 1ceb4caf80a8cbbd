#include "runtime/choice/registry/plan_facts.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/diagnostics/first_message.h"
#include "plans/format/plan_json.h"

namespace mscclc {
namespace {

/// What the table of the library is measured for, and what graphs are replayed on.
constexpr const char* kTarget = "sm_90";

bool is_replayable(const Program& plan, const std::optional<Proof>& proof) {
  if (!proof) return true;  // it was not proved
  const auto& targets = builtin_targets();
  const auto target = std::ranges::find(targets, kTarget, &Target::name);
  return proof_record(plan, *target, *proof).graph_replay;
}

/// True if a channel that reads and writes memory directly joins ranks of two nodes.
bool crosses_nodes(const Program& plan, uint32_t ranks_per_node) {
  const auto apart = [&](uint32_t a, uint32_t b) {
    return a != b && (ranks_per_node == 0 || a / ranks_per_node != b / ranks_per_node);
  };
  for (uint32_t r = 0; r < plan.ranks.size(); ++r) {
    for (const Channel& channel : plan.ranks[r].channels) {
      if (channel.kind == ChannelKind::memory && apart(r, channel.peer)) return true;
    }
  }
  return false;
}

bool contains(const Range& range, uint64_t value) {
  return range.min <= value && value <= range.max;
}

/// "1024 to 4096 bytes", "4096 bytes or more"
std::string range_text(const Range& range, const char* unit) {
  if (range.min == range.max) return fmt::format("{} {}", range.min, unit);
  if (range.max == ~uint64_t{0}) return fmt::format("{} {} or more", range.min, unit);
  return fmt::format("{} to {} {}", range.min, range.max, unit);
}

template <class T>
bool lists(const std::vector<T>& list, const T& value) {
  return list.empty() || std::ranges::find(list, value) != list.end();
}

/// Why the `select` options of a plan leave the request to others.
std::optional<Error> of_select(const Select& select, const PlanRequest& request) {
  const LibraryCall& call = request.call;
  if (!contains(select.sizes, call.bytes)) {
    return Error{"it is for " + range_text(select.sizes, "bytes")};
  }
  if (!contains(select.nodes, call.nodes)) {
    return Error{"it is for " + range_text(select.nodes, "nodes")};
  }
  if (!contains(select.gpus_per_node, call.ranks_per_node())) {
    return Error{"it is for " + range_text(select.gpus_per_node, "ranks a node")};
  }
  if (!lists(select.dtypes, call.dtype)) {
    return Error{fmt::format("it is not for {}", info(call.dtype).name)};
  }
  if (!lists(select.ops, request.call.op)) {
    return Error{fmt::format("it is not for {}", name(request.call.op))};
  }
  if (lists(select.tags, request.tag)) return std::nullopt;
  return Error{"the call has none of its tags"};
}

}  // namespace

PlanFacts::PlanFacts(const PickedPlan& picked)
    : use_(use_of(*picked.plan)),
      sums_(picked.sums()),
      replayable_(is_replayable(*picked.plan, picked.proof)) {
  for (const Rank& rank : picked.plan->ranks) {
    blocks_ = std::max(blocks_, rank.blocks);
    for (const Channel& c : rank.channels) switches_ |= c.kind == ChannelKind::switch_;
    for (const Buffer& b : rank.buffers) lines_ |= b.packets == PacketFormat::LL128;
  }
}

std::optional<Error> PlanFacts::of_contract(const Contract& contract,
                                            const LibraryCall& call) const {
  if (contract.kind != call.kind) return Error{fmt::format("it is for {}", name(contract.kind))};
  if (contract.ranks != call.ranks) {
    return Error{
        fmt::format("it is for {} rank{}", contract.ranks, contract.ranks == 1 ? "" : "s")};
  }
  if (has_root(call.kind) && contract.root != call.root) {
    return Error{fmt::format("it is for root {}", contract.root)};
  }
  if (call.kind == CollectiveKind::sendrecv &&
      receiver_of_0(contract.shift, call.ranks) != receiver_of_0(call.shift, call.ranks)) {
    return Error{fmt::format("it is for shift {}", contract.shift)};
  }
  // A request does not say the counts, or what a custom collective promises.
  if (contract.kind == CollectiveKind::alltoallv || contract.kind == CollectiveKind::custom) {
    return Error{"requests cannot distinguish such plans: load it by hand"};
  }
  if (contract.then != Contract::kNoFunction) {
    return Error{"requests ask for sums, and it gives row functions of them"};
  }
  return of_placement(contract, call);
}

/// Of what is made of a program and not proved, the row of the library has said it.
std::optional<Error> PlanFacts::of_order(const Program& plan, const PlanRequest& request) const {
  const SumOrder wanted = request.call.order;
  if (!sums_ || keeps_order(*sums_, request.call)) return std::nullopt;
  if (!plan.contract.reduces()) {
    return Error{fmt::format("it moves through sentinel packets, which have no -0.0: not '{}'",
                             name(wanted))};
  }
  if (!sums_->orders.keep(wanted)) {
    return Error{fmt::format("its sums do not keep '{}': {}", name(wanted), summary(wanted))};
  }
  return Error{fmt::format("its sums do not keep '{}' of {}, which it rounds on the way",
                           name(wanted), info(request.call.dtype).name)};
}

std::optional<Error> PlanFacts::of_placement(const Contract& contract, const LibraryCall& call) {
  if (!contract.can_alias() || contract.in_place == InPlace::either) return std::nullopt;
  const bool in_place_only = contract.in_place == InPlace::yes;
  if (call.either_place) {
    return Error{
        fmt::format("it is {}, and ranks without the root's buffers do not know whether it is",
                    in_place_only ? "for calls in place only" : "not for calls in place")};
  }
  if (in_place_only == call.in_place) return std::nullopt;
  return Error{call.in_place ? "it is not for calls in place" : "it is for calls in place only"};
}

std::optional<Error> PlanFacts::of_machine(const Program& plan, const PlanRequest& request) const {
  if (request.multiprocessors != 0 && blocks_ > request.multiprocessors) {
    return Error{fmt::format("its {} thread blocks do not fit on {} multiprocessors at once",
                             blocks_, request.multiprocessors)};
  }
  if (request.most_blocks != 0 && blocks_ > request.most_blocks) {
    return Error{fmt::format("it has {} thread blocks, and the caller allows {}", blocks_,
                             request.most_blocks)};
  }
  if (switches_ && !request.multicast) return Error{"it needs multicast of the NVLink switch"};
  if (lines_ && request.call.links == LinkKind::pcie) return Error{"packets in LL128 need NVLink"};
  if (request.call.captured && !replayable_) return Error{"its captured calls may not be replayed"};
  if (request.call.nodes == 1) return std::nullopt;
  if (switches_) return Error{"its switch channels join ranks of several nodes"};
  if (!crosses_nodes(plan, request.call.ranks_per_node())) return std::nullopt;
  return Error{"its memory channels join ranks of several nodes"};
}

std::optional<Error> PlanFacts::why_not(const Program& plan, const PlanRequest& request,
                                        const Select* select) const {
  if (auto why = of_contract(plan.contract, request.call)) return why;
  if (!plan.flags.empty()) return Error{"requests have no flags, which it waits for or raises"};
  Call call;
  const uint64_t parts = Chunking::parts_of_message(plan.contract);
  const uint32_t element = info(request.call.dtype).bytes;
  if (parts > 0) call.part_bytes = request.call.bytes / parts / element * element;
  call.dtype = request.call.dtype;
  call.accumulate = request.call.accumulate.value_or(info(call.dtype).accumulate);
  call.reduce = request.call.op;
  Diagnostics diagnostics;
  if (!check_call(plan, use_, call, diagnostics)) return Error{first_message(diagnostics)};
  if (select != nullptr) {
    if (auto why = of_select(*select, request)) return why;
  }
  if (auto why = of_order(plan, request)) return why;
  return of_machine(plan, request);
}

std::string call_text(const LibraryCall& call) {
  std::string text = fmt::format("{} over {} ranks", name(call.kind), call.ranks);
  if (call.nodes == 0) text += " spread unevenly over nodes";
  if (call.nodes > 1) text += fmt::format(" on {} nodes", call.nodes);
  if (has_root(call.kind)) text += fmt::format(" with root {}", call.root);
  if (call.kind == CollectiveKind::sendrecv) text += fmt::format(" with shift {}", call.shift);
  return text;
}

}  // namespace mscclc
