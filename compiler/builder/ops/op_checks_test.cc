#include "compiler/builder/ops/op_checks.h"

#include <catch2/catch.hpp>

#include "compiler/builder/ops/two_ranks.h"

using namespace mscclc;

namespace {

Fit check_op(TwoRanks& two, OpKind kind, std::vector<Ref> dsts, std::vector<Ref> srcs,
             OpOptions options = {}) {
  OperandFacts facts;
  facts.add(dsts);
  facts.add(srcs);
  return two.op_checks.check(info(kind), dsts, srcs, facts, options);
}

}  // namespace

TEST_CASE("operands fill the slots of their op") {
  TwoRanks two;
  const Ref here = two.local(two.inbox, {0}), there = two.far(two.inbox, {0});
  CHECK(check_op(two, OpKind::put, {there}, {here}) == Fit::whole);
  CHECK(check_op(two, OpKind::put, {there}, {here}) == Fit::whole);  // as the one before
  CHECK(two.message().empty());
  CHECK(check_op(two, OpKind::put, {here}, {there}) == Fit::wrong);
  CHECK(check_op(two, OpKind::signal, {}, {}) == Fit::nothing);
}

TEST_CASE("options belong to ops that take them") {
  TwoRanks two;
  const Ref here = two.local(two.inbox, {0}), other = two.local(two.inbox, {1});
  OpOptions part;
  part.part = 3;
  part.parts = 2;
  CHECK(check_op(two, OpKind::copy, {here}, {other}, part) == Fit::wrong);
  CHECK(two.message() == "part 3 of 2: expected one of 0 to 1");
  OpOptions sum;
  sum.reduce = ReduceOp::sum;
  CHECK(check_op(two, OpKind::copy, {here}, {other}, sum) == Fit::wrong);
  CHECK(two.message() == "'op' cannot be combined with 'copy'");
}

TEST_CASE("a channel that is counted has a partner") {
  TwoRanks two;
  const Ref end = two.end();
  CHECK(two.op_checks.check_partners(info(OpKind::signal), {&end, 1}));
  two.draft.out->channels[0].partner = kNone;
  CHECK_FALSE(two.op_checks.check_partners(info(OpKind::signal), {&end, 1}));
  CHECK(two.message() == "nothing can wait for this signal");
}
