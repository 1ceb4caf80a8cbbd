// What the library picks under the contracts about the bits of sums keeps them under many
// schedules: the short form of schedules_full, and that it notices a row that does not.
#include "tests/orders/ordered_rows.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "compiler/compile.h"
#include "ir/support/sanitized.h"
#include "tests/library/library.h"
#include "tests/library/shipped.h"

namespace mscclc {
namespace {

using testing::OrderedRow;

TEST_CASE("rows keep their contracts under many schedules") {
  constexpr uint64_t kMost = testing::amount(8, 8, 20);
  for (const testing::OrderedWorld world : {testing::OrderedWorld{3}, {4, 2}}) {
    const std::vector<OrderedRow> rows = testing::ordered_rows(shipped().table, world);
    REQUIRE(!rows.empty());
    for (const OrderedRow& row : rows) {
      const CompiledWorld compiled(row.program, row.defines);
      REQUIRE(compiled.errors() == "");
      testing::ScheduleCounts counts;
      CHECK(testing::broken_by_schedules(compiled.program(), row, {0, kMost - 2}, counts) == "");
      CHECK(testing::broken_by_schedules(compiled.program(), row, {kMost - 2, 2}, counts) == "");
      CHECK(counts.schedules == kMost);
      for (const SumOrder order : row.orders) {
        CHECK(counts.kept[static_cast<size_t>(order)] == kMost);
      }
    }
  }
}

TEST_CASE("every contract has rows in every world") {
  for (const testing::OrderedWorld& world : testing::ordered_worlds()) {
    INFO(world.ranks << " ranks, " << world.nodes << " nodes");
    const std::vector<OrderedRow> rows = testing::ordered_rows(shipped().table, world);
    for (const ProvedOrder& proved : kProvedOrders) {
      CHECK(std::ranges::any_of(rows, [&](const OrderedRow& row) {
        return std::ranges::find(row.orders, proved.order) != row.orders.end();
      }));
    }
  }
}

/// A plan of the library with one thing changed.
Program changed_program(const std::string& name, const std::string& from, const std::string& to) {
  std::string text = library_text(name);
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  text.replace(at, from.size(), to);
  Sources sources;
  const FileId file = sources.add("changed.mscl", text);
  Diagnostics diagnostics;
  FrontEndOptions options;
  options.defines = {{"R", "4"}};
  auto program = compile(sources, file, options, {}, diagnostics);
  INFO(render_text(diagnostics, sources));
  REQUIRE(program);
  return *std::move(program);
}

std::string broken_contract(const Program& program, SumOrder order) {
  const OrderedRow row{.program = "changed",
                       .defines = {},
                       .types = {Dtype::f32, Dtype::bf16},
                       .in_place = {false},
                       .orders = {order}};
  testing::ScheduleCounts counts;
  return testing::broken_by_schedules(program, row, {0, 40}, counts);
}

TEST_CASE("sums in another order, and packets that come too early, are noticed") {
  const Program own_first = changed_program("allreduce_1shot", "copies: 2", "copies: 2");
  CHECK_THAT(broken_contract(own_first, SumOrder::replicated),
             Catch::EndsWith("is not that of rank 0"));
  CHECK_THAT(broken_contract(own_first, SumOrder::ranks), Catch::EndsWith("is another sum"));
  const Program ordered = changed_program("allreduce_1shot_ordered", "copies: 2", "copies: 2");
  CHECK(broken_contract(ordered, SumOrder::ranks) == "");
  CHECK_THAT(broken_contract(ordered, SumOrder::tree), Catch::EndsWith("is another sum"));
  CHECK_THAT(broken_contract(ordered, SumOrder::exact), Catch::EndsWith("is another sum"));
  const Program early = changed_program("allreduce_1shot_ordered", "copies: 2", "copies: 1");
  CHECK_THAT(broken_contract(early, SumOrder::ranks), Catch::Contains("schedule"));
}

}  // namespace
}  // namespace mscclc
