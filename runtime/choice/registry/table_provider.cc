#include "runtime/choice/registry/table_provider.h"

#include <fmt/format.h>

#include <algorithm>

namespace mscclc {
namespace {

/// Calls that plans cannot distinguish become one.
PlanRequest normal(const PlanRequest& request) {
  PlanRequest normal = request;
  LibraryCall& call = normal.call;
  call.shift = call.kind == CollectiveKind::sendrecv ? receiver_of_0(call.shift, call.ranks) : 1;
  if (!has_root(call.kind)) call.root = 0;
  if (!rounds_sums(call)) call.order = SumOrder::any;
  return normal;
}

}  // namespace

std::shared_ptr<const PickedPlan> TableProvider::pick(const PlanRequest& asked,
                                                      std::vector<PassedOver>* passed_over,
                                                      Diagnostics& diagnostics) {
  if (asked.call.ranks == 0) return nullptr;
  const PlanRequest request = normal(asked);
  std::shared_ptr<const PickedPlan> picked;
  for (const LibraryRow& row : table_.rows()) {
    if (row.kind != request.call.kind) continue;
    auto why = row.why_not(request.call);
    if (!why && picked != nullptr) why = Error{fmt::format("'{}' goes first", picked->name)};
    if (!why) {
      Diagnostics found;
      auto [plan, problem] = plan_of(row, request, found);
      for (const Diagnostic& d : found.all()) diagnostics.add(d);
      if (found.has_errors()) return nullptr;
      why = plan == nullptr ? problem : plan->facts.why_not(*plan->picked.plan, request);
      if (plan != nullptr && !why) picked = {plan, &plan->picked};
    }
    if (passed_over != nullptr && why) {
      passed_over->push_back({name_of(row, request.call), why->text()});
    } else if (passed_over == nullptr && picked != nullptr) {
      break;
    }
  }
  return picked;
}

uint64_t TableProvider::max_bytes(const LibraryChoice& choice, const LibraryCall& call) const {
  uint64_t most = 0;
  for (const LibraryRow& row : table_.rows()) {
    const bool alike = row.kind == call.kind && row.for_ranks(call.ranks) &&
                       row.for_nodes(call.nodes) && row.choice == choice;
    if (alike) most = std::max(most, row.bytes);
  }
  return most;
}

}  // namespace mscclc
