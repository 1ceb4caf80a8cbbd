#include <catch2/catch.hpp>

#include "passes/testing/test_text.h"

namespace mscclc {
namespace {

using testing::after;
using testing::two_ranks;

std::string assigned(std::string_view body) { return after({"assign"}, two_ranks(body)); }

/// Three ranks: `declared` stands before them, `body` within them.
Program parsed_three(const std::string& declared, const std::string& body) {
  return testing::parse("program t\ncollective allreduce(ranks: 3, chunks: 4)\n" + declared +
                        "rank r in 0..3 {\n  let others = 0..3 except r\n" + body + "}\n");
}

}  // namespace

TEST_CASE("assign: what names no block goes to one extra block") {
  REQUIRE(assigned(R"(
    copy s[0] <- input[0]
    tb 2 { copy s[1] <- input[1] }
    copy s[2] <- input[2])") == R"(
3: copy s[0] <- input[0]
2: copy s[1] <- input[1]
3: copy s[2] <- input[2]
)");
}

TEST_CASE("assign: a program without blocks has one") {
  REQUIRE(assigned("copy s[0] <- input[0] ; put up.s[1] <- s[0] ; signal up ; wait up") == R"(
0: copy s[0] <- input[0]
0: put up.s[1] <- s[0]
0: signal up
0: wait up
)");
}

TEST_CASE("assign: groups and declared blocks count as named") {
  REQUIRE(assigned("group 0..4 { copy s[0] <- input[0] }  tb 5 {}  copy s[1] <- input[1]") == R"(
group: copy s[0] <- input[0]
6: copy s[1] <- input[1]
)");
}

TEST_CASE("assign: a side that is served goes where it is served, and all else with it") {
  REQUIRE(assigned(R"(
    tb 1 { signal up relaxed ; wait up relaxed }
    tb 3 { copy output[0] <- input[0] }
    put up.s[0] <- input[0]
    signal up
    wait up
    copy s[1] <- s[0])") == R"(
1: signal up relaxed
1: wait up relaxed
3: copy output[0] <- input[0]
1: put up.s[0] <- input[0]
1: signal up
1: wait up
1: copy s[1] <- s[0]
)");
}

TEST_CASE("assign: groups serve, too, and every port put needs the sending side") {
  REQUIRE(assigned(R"(
    channel net = port(1 - r)
    group 2..4 { signal net ; wait net }
    put net.s[0] <- input[0]
    copy s[1] <- input[1])") == R"(
group: signal net
group: wait net
group: put net.s[0] <- input[0]
group: copy s[1] <- input[1]
)");
}

TEST_CASE("assign: what is written as one sequence stays one") {
  REQUIRE(assigned(R"(
    tb 0 { signal up relaxed }
    tb 1 { wait up relaxed }
    put up.s[0] <- input[0]
    put up.s[1] <- input[1]
    signal up
    wait up
    copy s[2] <- s[0])") == R"(
0: signal up relaxed
1: wait up relaxed
2: put up.s[0] <- input[0]
2: put up.s[1] <- input[1]
2: release turn[0]
0: acquire turn[0]
0: signal up
0: release turn[1]
1: acquire turn[1]
1: wait up
1: release turn[2]
2: acquire turn[2]
2: copy s[2] <- s[0]
)");
  REQUIRE(after({"assign"}, two_ranks(R"(
    tb 0 { signal up relaxed }
    tb 1 { wait up relaxed }
    signal up ; wait up)",
                                      "launch auto_sync: false")) == R"(
0: signal up relaxed
1: wait up relaxed
0: signal up
1: wait up
)");
}

TEST_CASE("assign: the sequence goes round in a pipeline, and waits for whole ones") {
  Program p = testing::parse(two_ranks(R"(
    tb 0 { signal up relaxed }
    tb 1 { wait up relaxed }
    copy s[3] <- input[3]
    pipeline unit: 1KiB {
      put up.s[0] <- input[0]
      signal up
      wait up
    })"));
  testing::run(p, {"assign"});
  REQUIRE(testing::listing(p, 0) == R"(
0: signal up relaxed
1: wait up relaxed
2: copy s[3] <- input[3]
2~ acquire turn[2]
2~ put up.s[0] <- input[0]
2~ release turn[0]
0~ acquire turn[0]
0~ signal up
0~ release turn[1]
1~ acquire turn[1]
1~ wait up
1~ release turn[2]
)");
  REQUIRE(p.ranks[0].semaphores[2].initial == 1);
  testing::run(p, {"groups", "sync", "split", "complete_sums"});

  REQUIRE(assigned(R"(
    tb 0 { signal up relaxed }
    tb 1 { wait up relaxed }
    pipeline unit: 1KiB { tb 3 { copy s[1] <- input[1] } signal up }
    pipeline unit: 1KiB { wait up ; tb 3 { copy s[2] <- input[2] } })") == R"(
0: signal up relaxed
1: wait up relaxed
3~ copy s[1] <- input[1]
0~ signal up
0: release turn[0]
1: acquire turn[0]
1~ wait up
3~ copy s[2] <- input[2]
)");
}

TEST_CASE("assign: an op whose ends serve different blocks is taken apart") {
  Program p = parsed_three("", R"(
      buffer p[4] packets: LL16
      channel up[q in others] = memory(q)
      channel net[q in others] = port(q)
      tb 0 { signal up[others[0]] ; wait net[others[0]] }
      tb 1 { signal net[others[1]] ; wait up[others[1]] ; wait net[others[1]] }
      tb 2 { wait up[others[0]] }
      signal up[others[1]]
      signal up[q] for q in others
      wait up[q] for q in others
      signal net[others[0]]
      read_put_packets net[q].p[r] for q in others <- p[3]
)");
  p.launch.auto_sync = false;
  testing::run(p, {"assign"});
  REQUIRE(testing::listing(p, 0) == R"(
0: signal up[1]
0: wait net[1]
1: signal net[2]
1: wait up[2]
1: wait net[2]
2: wait up[1]
3: signal up[2]
0: signal up[1]
3: signal up[2]
2: wait up[1]
1: wait up[2]
3: signal net[1]
3: read_put_packets net[1].p[0] <- p[3]
1: read_put_packets net[2].p[0] <- p[3]
)");
}

TEST_CASE("assign: packets of a sentinel slot are not forwarded by two blocks") {
  Program p = parsed_three("select dtypes: [f32]\n", R"(
      buffer z[4] packets: sentinel
      channel net[q in others] = port(q)
      tb 0 { signal net[others[0]] }
      tb 1 { signal net[others[1]] }
      wait net[q] for q in others
      read_put_packets net[q].z[r] for q in others <- z[3]
)");
  REQUIRE(testing::fail(p, {"assign"}) == R"(
the far ends are served by different thread blocks, but only one can take packets from the slot: sentinel packets can be read once
when r = 0
in 'read_put_packets net[1].z[0], net[2].z[0] <- z[3]' (rank 0)
each side of a channel serves one block or group; these are served at rank 0, tb 0, and at rank 0, tb 1
)");
}

TEST_CASE("assign: what no block serves goes to the block that serves the rest") {
  Program p = parsed_three("select dtypes: [f32]\n", R"(
      buffer z[4] packets: sentinel
      buffer y[1]
      channel net[q in others] = port(q)
      tb 0 { put net[others[0]].y[0] <- input[0] }
      read_put_packets net[q].z[r] for q in others <- z[3]
)");
  testing::run(p, {"assign"});
  REQUIRE(testing::listing(p, 0) == R"(
0: put net[1].y[0] <- input[0]
0: read_put_packets net[1].z[0], net[2].z[0] <- z[3]
)");
}

TEST_CASE("assign: a barrier arrives in each of its blocks") {
  REQUIRE(assigned("tb 0 { copy s[0] <- input[0] }  barrier 0..2") == R"(
0: copy s[0] <- input[0]
0: barrier 0..2
1: barrier 0..2
)");
}

}  // namespace mscclc
