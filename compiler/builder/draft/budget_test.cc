#include "compiler/builder/draft/budget.h"

#include <catch2/catch.hpp>

using namespace mscclc;

TEST_CASE("a budget says once that there are too many ops") {
  Diagnostics diagnostics;
  BuildReports reports(diagnostics, nullptr, nullptr);
  Budget budget(reports);
  budget.set_max_ops(2);
  CHECK(budget.add_op(1));
  CHECK(budget.ops_left() == 1);
  CHECK(budget.add_op(2));
  CHECK(diagnostics.all().empty());
  CHECK_FALSE(budget.add_op(3));
  CHECK_FALSE(budget.add_op(4));
  CHECK(budget.gave_up());
  CHECK(budget.ops_left() == 0);
  REQUIRE(diagnostics.all().size() == 1);
  CHECK(diagnostics.all()[0].message == "more than 2 ops");
}

TEST_CASE("a budget counts thread blocks, and what another has used up") {
  Diagnostics diagnostics;
  BuildReports reports(diagnostics, nullptr, nullptr);
  Budget budget(reports), other(reports);
  budget.set_max_ops(5);
  CHECK(budget.add_blocks(3));
  CHECK(other.add_blocks(2));
  CHECK(budget.take(other));
  CHECK_FALSE(budget.take(other));
  CHECK(diagnostics.all().empty());
  CHECK_FALSE(budget.add_blocks(1));
  REQUIRE(diagnostics.all().size() == 1);
  CHECK(diagnostics.all()[0].message == "more than 5 thread blocks");
}
