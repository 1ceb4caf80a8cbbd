// A row of a batch has the same bits in batches of 1 to 512 rows, and all ranks get them: by name,
// under each contract, on the host device.
#include "tests/orders/row_batches.h"

#include <catch2/catch.hpp>

#include "tests/collectives/compiled_in_library.h"
#include "tests/runtime/ranks.h"

namespace mscclc {
namespace {

using testing::RowBatches;

/// "" if every batch had the bits of the row alone.
std::string rows_of(uint32_t ranks, SumOrder order, const RowBatches& rows) {
  return testing::run_threads(ranks, [&](Communicator& communicator) -> std::string {
    Diagnostics diagnostics;
    const auto made = Collectives::create(communicator, testing::compiled_in_library(),
                                          {.order = order}, diagnostics);
    if (made == nullptr) return testing::text(diagnostics);
    const auto at_once = [](StreamHandle, const auto& calls, Diagnostics& problems) {
      return calls(problems);
    };
    uint64_t batches = 0;
    const std::string fault = testing::check_rows(*made, rows, at_once, batches);
    const uint64_t wanted = (rows.most_rows - 1) / rows.step + 1;
    return fault.empty() && batches != wanted ? "batches are missing" : fault;
  });
}

constexpr SumOrder kSameForAllBatches[] = {SumOrder::ranks, SumOrder::tree};

TEST_CASE("a row has the same bits in batches of every number of rows, from 1 to 512") {
  constexpr Dtype kTypes[] = {Dtype::f32, Dtype::bf16, Dtype::f16, Dtype::e4m3};
  for (uint32_t ranks = 2; ranks <= 8; ++ranks) {
    for (const SumOrder order : kSameForAllBatches) {
      INFO(ranks << " ranks, " << name(order));
      const RowBatches rows{.dtype = kTypes[ranks % 4], .hidden = 360};
      CHECK(rows_of(ranks, order, rows) == "");
    }
  }
}

TEST_CASE("a row has the same bits in batches of up to 64 MiB") {
  for (const SumOrder order : kSameForAllBatches) {
    INFO(name(order));
    CHECK(rows_of(3, order, {.hidden = 1 << 16, .most_rows = 512, .step = 73}) == "");
  }
}

}  // namespace
}  // namespace mscclc
