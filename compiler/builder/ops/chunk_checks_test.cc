#include "compiler/builder/ops/chunk_checks.h"

#include <catch2/catch.hpp>

#include "compiler/builder/ops/two_ranks.h"

using namespace mscclc;

namespace {

bool check_copy(TwoRanks& two, const Ref& to, const Ref& from) {
  OperandFacts facts;
  facts.add({&to, 1});
  facts.add({&from, 1});
  return two.chunk_checks.check(info(OpKind::copy), {&to, 1}, {&from, 1}, facts, {});
}

}  // namespace

TEST_CASE("chunks of an op are as many on both sides") {
  TwoRanks two;
  const Ref one = two.local(two.inbox, {0}), pair = two.local(two.inbox, {Index::range(1, 3)});
  CHECK(check_copy(two, one, two.local(two.inbox, {3})));
  CHECK_FALSE(check_copy(two, one, pair));
  CHECK(two.message() == "1 chunk <- 2 chunks");
}

TEST_CASE("chunks of input and output are equally long for every message") {
  TwoRanks two;
  CHECK(
      check_copy(two, two.local(two.draft.output_name, {1}), two.local(two.draft.input_name, {1})));
  CHECK_FALSE(
      check_copy(two, two.local(two.draft.output_name, {0}), two.local(two.draft.input_name, {1})));
  CHECK(two.message() == "input[1] and output[0] differ in size when the message does not divide");
}

TEST_CASE("an op in a pipeline is over its chunks") {
  TwoRanks two;
  REQUIRE(two.places.enter_pipeline(1024, 2, {}, {}));
  CHECK_FALSE(check_copy(two, two.local(two.inbox, {0}), two.local(two.inbox, {1})));
  CHECK(two.message() == "1 chunk in a pipeline over 2");
}
