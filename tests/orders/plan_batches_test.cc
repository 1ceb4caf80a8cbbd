// Over all plans that the library picks for sums under a contract: in each a row has the same bits
// in batches of 1 to 512 rows, and in all of them the same. (That calls by name give these for
// every number of rows is in row_batches_test.cc; every number in every plan in batches_full.cc.)
#include "tests/orders/plan_batches.h"

#include <catch2/catch.hpp>

#include "ir/support/sanitized.h"
#include "tests/library/shipped.h"

namespace mscclc {
namespace {

using testing::kThorough;
using testing::OrderedRow;
using testing::RowBatches;

/// All plans at so many ranks; how many.
size_t check_plans(uint32_t ranks, const RowBatches& rows) {
  size_t plans = 0;
  testing::KnownRows known;
  for (const OrderedRow& row : testing::ordered_rows(shipped().table, {ranks})) {
    if (!testing::is_compared(row, rows.dtype)) continue;
    CHECK(known.check(row, rows) == "");
    ++plans;
  }
  return plans;
}

TEST_CASE("a row has the same bits in all plans for 2 to 8 ranks") {
  for (uint32_t ranks = 2; ranks <= 8; ++ranks) {
    if (ranks > 4 && ranks < 8 && !kThorough) continue;  // row_batches_test has them
    const Dtype dtype = ranks % 2 == 0 ? Dtype::f32 : Dtype::bf16;
    CHECK(check_plans(ranks, {.dtype = dtype, .hidden = 360, .step = 73}) > 3);
  }
}

TEST_CASE("a row has the same bits in all plans and batches of many MiB") {
  constexpr uint64_t kHidden = kThorough ? 1 << 15 : 1 << 13;
  CHECK(check_plans(2, {.dtype = Dtype::f32, .hidden = kHidden, .step = 511}) > 3);
}

}  // namespace
}  // namespace mscclc
