#include "compiler/builder/ops/ops.h"

#include <catch2/catch.hpp>

#include "compiler/builder/ops/two_ranks.h"

using namespace mscclc;

TEST_CASE("an op is appended with its place and operands") {
  TwoRanks two;
  CHECK(two.op(OpKind::put, {two.far(two.inbox, {2})}, {two.local(two.inbox, {1})}));
  REQUIRE(two.draft.out->ops.size() == 1);
  const Op& op = two.draft.out->ops[0];
  CHECK(op.kind == OpKind::put);
  CHECK(op.block == 0);
  CHECK(two.draft.program.dsts(op)[0].first == 2);
  CHECK(two.draft.program.srcs(op)[0].first == 1);
  CHECK(two.budget.ops() == 1);
}

TEST_CASE("a copy to itself is left out, and a sum of one is a copy") {
  TwoRanks two;
  const Ref a = two.local(two.inbox, {0}), b = two.local(two.inbox, {1});
  CHECK(two.op(OpKind::copy, {a}, {a}));
  CHECK(two.draft.out->ops.empty());
  CHECK(two.op(OpKind::reduce, {a}, {b}));
  REQUIRE(two.draft.out->ops.size() == 1);
  CHECK(two.draft.out->ops[0].kind == OpKind::copy);
}

TEST_CASE("an op with an operand whose mistake is reported says nothing") {
  TwoRanks two;
  CHECK_FALSE(two.op(OpKind::copy, {Ref{}}, {two.local(two.inbox, {1})}));
  CHECK(two.message().empty());
}
