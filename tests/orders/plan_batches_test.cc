// Over all plans that the library picks for sums under a contract: in each a row has the same bits
// in batches of 1 to 512 rows, and in all of them the same. (That calls by name give these for
// every number of rows is in row_batches_test.cc.)
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "tests/library/library.h"
#include "tests/library/shipped.h"
#include "tests/orders/ordered_rows.h"
#include "tests/orders/row_batches.h"
#include "tests/runtime/ranks.h"

namespace mscclc {
namespace {

using testing::OrderedRow;
using testing::RowBatches;

/// Gives one plan, whatever the call.
class OnlyPlan final : public PlanProvider {
 public:
  explicit OnlyPlan(const OrderedRow& row) {
    const CompiledWorld world(row.program, row.defines);
    INFO(row.text());
    REQUIRE(world.errors() == "");
    picked_ = std::make_shared<PickedPlan>(
        PickedPlan{.name = row.text(),
                   .plan = std::make_shared<const Program>(world.program()),
                   .max_bytes = ~uint64_t{0},
                   .proof = {},
                   .why = "it is the only one"});
  }
  std::shared_ptr<const PickedPlan> pick(const PlanRequest&, std::vector<PassedOver>*,
                                         Diagnostics&) override {
    return picked_;
  }
  const Contract& contract() const { return picked_->plan->contract; }

 private:
  std::shared_ptr<const PickedPlan> picked_;
};

/// "" if each batch had the bits of the row alone; what these are, by rank.
std::string rows_of(const std::shared_ptr<OnlyPlan>& plan, const RowBatches& rows,
                    std::vector<std::vector<uint8_t>>& bits) {
  bits.resize(plan->contract().ranks);
  const auto body = [&](Communicator& communicator) -> std::string {
    Diagnostics diagnostics;
    const auto all = Collectives::create(communicator, plan, {}, diagnostics);
    if (all == nullptr) return testing::text(diagnostics);
    const auto at_once = [](StreamHandle, const auto& calls, Diagnostics& problems) {
      return calls(problems);
    };
    uint64_t batches = 0;
    return testing::check_rows(*all, rows, at_once, batches, &bits[communicator.rank()]);
  };
  return testing::run_threads(plan->contract().ranks, body);
}

bool has(const auto& list, const auto& value) {
  return std::ranges::find(list, value) != list.end();
}

/// All plans at so many ranks; how many.
size_t check_plans(uint32_t ranks, RowBatches rows) {
  size_t plans = 0;
  // Of one collective, under one contract, of one type.
  std::map<std::pair<CollectiveKind, SumOrder>, std::vector<std::vector<uint8_t>>> known;
  for (const OrderedRow& row : testing::ordered_rows(shipped().table, {ranks})) {
    if (!has(row.types, rows.dtype)) continue;
    const auto plan = std::make_shared<OnlyPlan>(row);
    rows.kind = plan->contract().kind;
    std::vector<std::vector<uint8_t>> bits;
    INFO(row.text());
    for (const SumOrder order : row.orders) {
      if (order == SumOrder::replicated) continue;
      if (bits.empty()) {
        CHECK(rows_of(plan, rows, bits) == "");
        ++plans;
      }
      CHECK(known.try_emplace({rows.kind, order}, bits).first->second == bits);
    }
  }
  return plans;
}

TEST_CASE("a row has the same bits in all plans for 2 to 8 ranks") {
  for (uint32_t ranks = 2; ranks <= 8; ++ranks) {
    const Dtype dtype = ranks % 2 == 0 ? Dtype::f32 : Dtype::bf16;
    CHECK(check_plans(ranks, {.dtype = dtype, .hidden = 360, .step = 73}) > 3);
  }
}

TEST_CASE("a row has the same bits in all plans and batches of up to 64 MiB") {
  CHECK(check_plans(2, {.dtype = Dtype::f32, .hidden = 1 << 15, .step = 511}) > 3);
}

/// By hand, some hours, every number of rows: bazel run //tests/orders:plan_batches_test --
/// '[full]'
TEST_CASE("a row has the same bits in all plans, of every type and number of ranks", "[.][full]") {
  for (uint32_t ranks = 2; ranks <= 8; ++ranks) {
    for (const Dtype dtype : {Dtype::f32, Dtype::bf16, Dtype::f16, Dtype::e4m3}) {
      CHECK(check_plans(ranks, {.dtype = dtype, .hidden = 360}) > 3);
      CHECK(check_plans(ranks, {.dtype = dtype, .hidden = 1 << 15, .step = 73}) > 3);
    }
  }
}

}  // namespace
}  // namespace mscclc
