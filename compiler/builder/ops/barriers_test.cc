#include "compiler/builder/ops/barriers.h"

#include <catch2/catch.hpp>

#include "compiler/builder/ops/two_ranks.h"

using namespace mscclc;

namespace {

struct WithBarriers : TwoRanks {
  Barriers barriers{reports, draft, budget, places, locations};
};

}  // namespace

TEST_CASE("a barrier outside blocks is an arrival of each of its blocks") {
  WithBarriers two;
  two.places.no_place();
  CHECK(two.barriers.add(List::range(0, 3), {}));
  REQUIRE(two.draft.out->ops.size() == 3);
  CHECK(two.draft.out->ops[2].kind == OpKind::barrier);
  CHECK(two.draft.out->ops[2].block == 2);
  CHECK(two.draft.out->blocks == 3);
  two.barriers.check(0);
  CHECK(two.message().empty());
}

TEST_CASE("a block that does not reach its barrier is reported") {
  WithBarriers two;
  CHECK(two.barriers.add(List::range(0, 2), {}));
  two.barriers.check(0);
  CHECK(two.message() == "tb 0 reaches the barrier 0..2 once, tb 1 never");
}

TEST_CASE("a barrier without blocks, or without the block at hand, is refused") {
  WithBarriers two;
  CHECK_FALSE(two.barriers.add(List::range(0, 0), {}));
  CHECK(two.message() == "an empty barrier");
  CHECK_FALSE(two.barriers.add(List::range(1, 3), {}));
  CHECK(two.draft.out->ops.empty());
}
