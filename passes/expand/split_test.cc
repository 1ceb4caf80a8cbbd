#include <catch2/catch.hpp>

#include "passes/testing/test_text.h"

namespace mscclc {

using testing::fail;
using testing::listing;
using testing::parse;
using testing::run;
using testing::two_ranks;

TEST_CASE("split: ops are sorted by block, in order, and empty blocks are kept") {
  Program p = parse(two_ranks(R"(
    tb 2 { copy s[0] <- input[0] }
    tb 0 { copy s[1] <- input[1] }
    tb 4 {}
    tb 2 { copy s[2] <- input[2] })"));
  run(p, {"split"});
  REQUIRE(p.split);
  REQUIRE(p.ranks[0].blocks == 5);
  REQUIRE(listing(p, 0) == R"(
0: copy s[1] <- input[1]
2: copy s[0] <- input[0]
2: copy s[2] <- input[2]
)");
}

TEST_CASE("split: ops without a block of their own are an error") {
  Program p = parse(two_ranks("group 0..2 { copy s[0] <- input[0] }"));
  REQUIRE(fail(p, {"split"}) == R"(
'copy s[0] <- input[0]' of rank 0 (r = 0) has no thread block of its own
'groups' must run before 'split'
)");
}

}  // namespace mscclc
