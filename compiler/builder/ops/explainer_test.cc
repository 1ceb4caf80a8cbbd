#include "compiler/builder/ops/explainer.h"

#include <catch2/catch.hpp>

#include "compiler/builder/ops/two_ranks.h"

using namespace mscclc;

namespace {

std::string explained(TwoRanks& two, OpKind kind, std::vector<Ref> dsts, std::vector<Ref> srcs) {
  Explainer explainer(two.reports, two.draft);
  CHECK_FALSE(explainer.explain(info(kind), dsts, srcs));
  return two.message();
}

}  // namespace

TEST_CASE("operands that fit another op: it is the remedy") {
  TwoRanks two;
  const Ref here = two.local(two.inbox, {0}), there = two.far(two.inbox, {0});
  CHECK(explained(two, OpKind::copy, {there}, {here}) ==
        "'copy' writes chunks of this rank; use 'put'");
}

TEST_CASE("a chunk of this rank where a channel is needed") {
  TwoRanks two;
  const Ref here = two.local(two.inbox, {0});
  CHECK(explained(two, OpKind::signal, {here}, {}) == "'inbox' is a buffer; expected a channel");
}

TEST_CASE("an op without operands says what it needs") {
  TwoRanks two;
  CHECK(explained(two, OpKind::wait, {}, {}) == "'wait' needs a operand");
}
