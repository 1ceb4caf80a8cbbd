#include "tests/orders/plan_batches.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <stdexcept>

#include "runtime/api/plan_provider.h"
#include "tests/library/library.h"
#include "tests/runtime/ranks.h"

namespace mscclc::testing {
namespace {

std::shared_ptr<const Program> plan_of(const OrderedRow& row) {
  const CompiledWorld world(row.program, row.defines);
  if (!world.errors().empty()) throw std::runtime_error(row.text() + ": " + world.errors());
  return std::make_shared<const Program>(world.program());
}

/// Gives one plan, whatever the call.
class OnlyPlan final : public PlanProvider {
 public:
  explicit OnlyPlan(const OrderedRow& row)
      : picked_(std::make_shared<PickedPlan>(PickedPlan{.name = row.text(),
                                                        .plan = plan_of(row),
                                                        .max_bytes = ~uint64_t{0},
                                                        .proof = {},
                                                        .why = "it is the only one"})) {}
  std::shared_ptr<const PickedPlan> pick(const PlanRequest&, std::vector<PassedOver>*,
                                         Diagnostics&) override {
    return picked_;
  }
  const Contract& contract() const { return picked_->plan->contract; }

 private:
  const std::shared_ptr<const PickedPlan> picked_;
};

/// "" if each batch had the bits of the row alone; what these are, by rank.
std::string rows_of(const std::shared_ptr<OnlyPlan>& plan, const RowBatches& rows,
                    std::vector<std::vector<uint8_t>>& bits) {
  bits.resize(plan->contract().ranks);
  const auto body = [&](Communicator& communicator) -> std::string {
    Diagnostics diagnostics;
    const auto all = Collectives::create(communicator, plan, {}, diagnostics);
    if (all == nullptr) return text(diagnostics);
    const auto at_once = [](StreamHandle, const auto& calls, Diagnostics& problems) {
      return calls(problems);
    };
    uint64_t batches = 0;
    return check_rows(*all, rows, at_once, batches, &bits[communicator.rank()]);
  };
  return run_threads(plan->contract().ranks, body);
}

}  // namespace

bool is_compared(const OrderedRow& row, Dtype dtype) {
  const auto more = [](SumOrder order) { return order != SumOrder::replicated; };
  return std::ranges::count(row.types, dtype) != 0 && std::ranges::any_of(row.orders, more);
}

CollectiveKind kind_of(const OrderedRow& row) { return plan_of(row)->contract.kind; }

bool KnownRows::has(CollectiveKind kind, SumOrder order) const {
  return order == SumOrder::replicated || known_.contains({kind, order});
}

std::string KnownRows::check(const OrderedRow& row, RowBatches rows) {
  const auto plan = std::make_shared<OnlyPlan>(row);
  rows.kind = plan->contract().kind;
  std::vector<std::vector<uint8_t>> bits;
  std::string fault = rows_of(plan, rows, bits);
  for (const SumOrder order : row.orders) {
    if (!fault.empty()) break;
    if (order == SumOrder::replicated) continue;
    if (known_.try_emplace({rows.kind, order}, bits).first->second != bits) {
      fault = fmt::format("other bits than another plan under '{}'", name(order));
    }
  }
  return fault.empty() ? "" : fmt::format("{}: {}", row.text(), fault);
}

}  // namespace mscclc::testing
