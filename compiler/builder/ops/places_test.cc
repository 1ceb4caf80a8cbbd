#include "compiler/builder/ops/places.h"

#include <catch2/catch.hpp>

#include "compiler/builder/ops/two_ranks.h"

using namespace mscclc;

TEST_CASE("groups of the same blocks are one") {
  TwoRanks two;
  CHECK(two.places.enter_group(List::range(0, 2), {}));
  const uint32_t group = two.places.group();
  CHECK(two.places.block() == kNone);
  CHECK(two.places.enter_group(List::range(1, 3), {}));
  CHECK(two.places.group() != group);
  CHECK(two.places.enter_group(List::range(0, 2), {}));
  CHECK(two.places.group() == group);
  CHECK(two.places.owner_text(two.places.owner()) == "group [0, 1]");
  CHECK(two.draft.out->blocks == 3);
  const std::vector<int64_t> twice = {1, 1};
  CHECK_FALSE(two.places.enter_group(List::stored(twice), {}));
  CHECK(two.message() == "tb 1 appears twice in the group");
  CHECK_FALSE(two.places.placed());
}

TEST_CASE("pipelines with one ratio of unit and chunks have one class of rounds") {
  TwoRanks two;
  CHECK(two.places.rounds() == 0);
  REQUIRE(two.places.enter_pipeline(1024, 2, {}, {}));
  const uint32_t loop = two.places.loop(), rounds = two.places.rounds();
  CHECK_FALSE(two.places.enter_pipeline(1024, 2, {}, {}));
  two.places.leave_pipeline();
  REQUIRE(two.places.enter_pipeline(512, 1, {}, {}));
  CHECK(two.places.rounds() == rounds);
  CHECK(two.places.loop() != loop);
  CHECK(two.places.rounds_text(rounds) == "in each round of a pipeline with unit: 512");
  CHECK(two.places.rounds_text(0) == "outside pipelines");
  two.places.leave_pipeline();
  CHECK(two.places.resume_pipeline(loop, 1024, 2, {}));
  CHECK(two.places.loop() == loop);
  two.places.leave_pipeline();
  CHECK_FALSE(two.places.resume_pipeline(loop, 1024, 1, {}));
}

TEST_CASE("a block without ops is remembered when its rank is left") {
  TwoRanks two;
  two.places.use_block(0);
  CHECK(two.places.enter_block(2, {4, 6}));
  two.places.leave_rank();
  REQUIRE(two.places.empty_blocks().size() == 2);
  CHECK(two.places.empty_blocks()[1].block == 2);
  CHECK(two.places.empty_blocks()[1].mark.begin == 4);
}

TEST_CASE("another builder's groups and classes get the numbers that they have here") {
  TwoRanks two, other;
  two.places.enter_group(List::range(0, 2), {});
  two.places.enter_pipeline(16, 1, {}, {});
  other.places.enter_group(List::range(5, 6), {});
  other.places.enter_group(List::range(0, 2), {});
  other.places.enter_pipeline(16, 3, {}, {});
  other.places.leave_pipeline();
  other.places.enter_pipeline(32, 2, {}, {});
  CHECK(two.places.take_groups(other.places) == std::vector<uint32_t>{1, 0});
  CHECK(two.places.take_round_classes(other.places) == std::vector<uint32_t>{0, 2, 1});
}
