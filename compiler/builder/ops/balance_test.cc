#include "compiler/builder/ops/balance.h"

#include <catch2/catch.hpp>

#include "compiler/builder/ops/two_ranks.h"

using namespace mscclc;

namespace {

void check_balance(TwoRanks& two) {
  const Balance balance(two.reports, two.draft, two.owned.members(), two.places, two.tallies);
  balance.check(0);
  balance.check(1);
}

}  // namespace

TEST_CASE("signals and waits that agree are in balance") {
  TwoRanks two;
  CHECK(two.op(OpKind::signal, {two.end()}));
  two.enter(1);
  two.places.enter_block(0, {});
  CHECK(two.op(OpKind::wait, {two.end()}));
  check_balance(two);
  CHECK(two.message().empty());
}

TEST_CASE("a signal that is not waited for is out of balance") {
  TwoRanks two;
  CHECK(two.op(OpKind::signal, {two.end()}));
  CHECK(two.op(OpKind::signal, {two.end()}));
  check_balance(two);
  CHECK(two.message() == "rank 0 signals 'ch' twice, rank 1 never waits");
}

TEST_CASE("waits in a pipeline do not answer signals outside of it") {
  TwoRanks two;
  CHECK(two.op(OpKind::signal, {two.end()}));
  two.enter(1);
  two.places.enter_block(0, {});
  two.places.enter_pipeline(1024, 1, {}, {});
  CHECK(two.op(OpKind::wait, {two.end()}));
  check_balance(two);
  REQUIRE_FALSE(two.diagnostics.all().empty());
  CHECK(two.diagnostics.all()[0].message == "rank 0 signals 'ch' once, rank 1 waits elsewhere");
}
