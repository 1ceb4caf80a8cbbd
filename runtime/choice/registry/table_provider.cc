#include "runtime/choice/registry/table_provider.h"

#include <fmt/format.h>

#include <algorithm>

namespace mscclc {
namespace {

/// Calls that plans cannot distinguish become one.
PlanRequest normal(const PlanRequest& request) {
  PlanRequest normal = request;
  LibraryCall& call = normal.call;
  const int64_t n = call.ranks;
  call.shift = call.kind == CollectiveKind::sendrecv ? ((call.shift % n) + n) % n : 1;
  if (!has_root(call.kind)) call.root = 0;
  if (!order_matters(call)) call.order = SumOrder::any;
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
    const auto unfit = row.why_not(request.call);
    std::string why = unfit ? unfit->text() : "";
    if (why.empty() && picked != nullptr) why = fmt::format("'{}' goes first", picked->name);
    if (why.empty()) {
      Diagnostics found;
      const auto plan = plan_of(row, request, why, found);
      for (const Diagnostic& d : found.all()) diagnostics.add(d);
      if (found.has_errors()) return nullptr;
      if (plan != nullptr) why = plan->facts.why_not(*plan->picked.plan, request);
      if (plan != nullptr && why.empty()) picked = {plan, &plan->picked};
    }
    if (passed_over != nullptr && !why.empty()) {
      passed_over->push_back({name_of(row, request.call), std::move(why)});
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
