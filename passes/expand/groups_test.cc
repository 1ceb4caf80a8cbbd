#include <catch2/catch.hpp>

#include "passes/testing/test_text.h"

namespace mscclc {
namespace {

using testing::after;
using testing::fail;
using testing::parse;
using testing::run;
using testing::two_ranks;

std::string expanded(std::string_view body, std::string_view more = "") {
  return after({"groups"}, two_ranks(body, more));
}

}  // namespace

TEST_CASE("groups: data ops are cut in parts, a group of one block is that block") {
  REQUIRE(expanded(R"(
    group 1..3 { copy s[0..2] <- input[0..2] }
    group [3] { copy s[2] <- input[2] })") == R"(
1: copy s[0..2] <- input[0..2] part: [0, 2]
2: copy s[0..2] <- input[0..2] part: [1, 2]
3: copy s[2] <- input[2]
)");
}

TEST_CASE("groups: synchronising and port ops stay in the first block") {
  REQUIRE(expanded(R"(
    buffer p[4] packets: LL16
    channel net = port(1 - r)
    group [2, 0] {
      put net.s[0] <- input[0]
      read_put_packets net.p[0] <- p[1]
      flush net
      signal net
    }
    tb 1 { wait net })",
                   "launch auto_sync: false") == R"(
2: put net.s[0] <- input[0]
2: read_put_packets net.p[0] <- p[1]
2: flush net
2: signal net
1: wait net
)");
}

TEST_CASE("groups: sync is a barrier of the group, a barrier counts every block") {
  REQUIRE(expanded("group 0..2 { sync }") == R"(
0: barrier 0..2
1: barrier 0..2
)");
  Program p = parse(two_ranks("group 0..2 { sync }  barrier 0..3"));
  std::vector<Op>& ops = p.ranks[0].ops;  // the front end has no barrier in groups: put it there
  ops.erase(ops.begin() + 1);
  ops[1].block = kNone;
  ops[1].group = ops[0].group;
  run(p, {"groups"});
  REQUIRE(testing::listing(p, 0) == R"(
0: barrier 0..2
1: barrier 0..2
0: barrier 0..3
1: barrier 0..3
2: barrier 0..3
)");
}

TEST_CASE("groups: blocks meet after a wait and before a signal") {
  REQUIRE(expanded(R"(group 0..2 {
    signal up relaxed ; wait up relaxed
    put up.s[0] <- input[0] ; put up.s[1] <- input[1]
    signal up ; wait up
  })") == R"(
0: signal up relaxed
0: wait up relaxed
0: barrier 0..2
1: barrier 0..2
0: put up.s[0] <- input[0] part: [0, 2]
1: put up.s[0] <- input[0] part: [1, 2]
0: put up.s[1] <- input[1] part: [0, 2]
1: put up.s[1] <- input[1] part: [1, 2]
0: barrier 0..2
1: barrier 0..2
0: signal up
0: wait up
)");
}

TEST_CASE("groups: auto_sync: false adds no barrier, and reports where one is missing") {
  const auto complaints = [](std::string_view body) {
    Program p = testing::parse(testing::two_ranks(body, "launch auto_sync: false"));
    PassOptions options;
    options.only = {"groups"};
    Diagnostics diagnostics;
    REQUIRE_FALSE(run_passes(p, options, diagnostics));
    std::string text = "\n";
    for (const Diagnostic& d : diagnostics.all()) text += d.message + "\n" + d.notes[2].text + "\n";
    return text;
  };
  REQUIRE(complaints("group 0..2 { wait up ; put up.s[0] <- input[0] ; signal up }") == R"(
a 'sync' of the group is missing before this op
'wait up' (rank 0, tb 0): all blocks of the group must come after this
a 'sync' of the group is missing before this op
'put up.s[0] <- input[0] part: [1, 2]' (rank 0, tb 1): what another block has done must be published here
)");
  REQUIRE(complaints(R"(pipeline unit: 1KiB {
    group 0..2 { put up.s[0] <- input[0] ; sync ; signal up ; wait up }
  })") == R"(
a 'sync' of the group is missing before this op
'wait up' (rank 0, tb 0): the next round must come after this one
)");
  // Barriers that blocks write for themselves do not count.
  REQUIRE(complaints(R"(
    tb 2 { signal up }
    group 0..2 { wait up }
    tb 0 { barrier 0..2 }
    tb 1 { barrier 0..2 }
    group 0..2 { put up.s[0] <- input[0] })") == R"(
a 'sync' of the group is missing before this op
'wait up' (rank 0, tb 0): all blocks of the group must come after this
)");
  REQUIRE(expanded("group 0..2 { wait up ; sync ; put up.s[0] <- input[0] ; sync ; signal up }",
                   "launch auto_sync: false") == R"(
0: wait up
0: barrier 0..2
1: barrier 0..2
0: put up.s[0] <- input[0] part: [0, 2]
1: put up.s[0] <- input[0] part: [1, 2]
0: barrier 0..2
1: barrier 0..2
0: signal up
)");
}

TEST_CASE("groups: a signal in front of a pipeline needs no barrier in its rounds") {
  REQUIRE(expanded(R"(group 0..2 { signal up ; wait up }
    pipeline unit: 1KiB { group 0..2 { put up.s[0] <- input[0] } })") == R"(
0: signal up
0: wait up
0: barrier 0..2
1: barrier 0..2
0~ put up.s[0] <- input[0] part: [0, 2]
1~ put up.s[0] <- input[0] part: [1, 2]
)");
}

TEST_CASE("groups: members meet before they go on elsewhere, too") {
  REQUIRE(expanded(R"(
    group 0..3 { wait up }
    tb 1 { copy s[0] <- input[0] }
    group 1..3 { copy s[1] <- input[1] }
    group 0..3 { signal up })") == R"(
0: wait up
0: barrier 0..3
1: barrier 0..3
2: barrier 0..3
1: copy s[0] <- input[0]
1: copy s[1] <- input[1] part: [0, 2]
2: copy s[1] <- input[1] part: [1, 2]
0: barrier 0..3
1: barrier 0..3
2: barrier 0..3
0: signal up
)");
}

TEST_CASE("groups: in a pipeline blocks meet each round, else in front of it") {
  REQUIRE(expanded(R"(
    group 0..2 { wait up }
    pipeline unit: 1KiB { group 0..2 { put up.s[0] <- input[0] } }
    group 0..2 { signal up })") == R"(
0: wait up
0: barrier 0..2
1: barrier 0..2
0~ put up.s[0] <- input[0] part: [0, 2]
1~ put up.s[0] <- input[0] part: [1, 2]
0: barrier 0..2
1: barrier 0..2
0: signal up
)");
  // The wait of a round comes before the puts of the next.
  REQUIRE(expanded(R"(
    pipeline unit: 1KiB { group 0..2 { put up.s[0] <- input[0] ; signal up ; wait up } })") == R"(
0~ put up.s[0] <- input[0] part: [0, 2]
1~ put up.s[0] <- input[0] part: [1, 2]
0~ barrier 0..2
1~ barrier 0..2
0~ signal up
0~ wait up
0~ barrier 0..2
1~ barrier 0..2
)");
}

TEST_CASE("groups: an op that is a part already is an error") {
  Program p = parse(two_ranks("group 0..2 { copy s[0] <- input[0] part: [0, 3] }"));
  REQUIRE(fail(p, {"groups"}) == R"(
'copy s[0] <- input[0] part: [0, 3]' of rank 0 (r = 0) has a part already, but stands in a group
)");
}

}  // namespace mscclc
