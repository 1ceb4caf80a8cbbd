// The same op for several peers: forms `join` and `fan`.
#include <catch2/catch.hpp>

#include "passes/fuse/fuse_test_text.h"

namespace mscclc {

using testing::fused;
using testing::keeps;
using testing::World;

TEST_CASE("fuse: puts to several peers") {
  REQUIRE(fused(R"(
    put ch[1].t[0] <- input[0]
    put ch[2].t[0] <- input[0]
    put ch[3].t[0] <- s[1])") == R"(
0: put ch[1].t[0], ch[2].t[0], ch[3].t[0] <- input[0], input[0], s[1]
)");
  REQUIRE(fused("put net[1].t[0] <- input[0] ; put net[2].t[0] <- input[0]") == R"(
0: put net[1].t[0], net[2].t[0] <- input[0], input[0]
)");
}

TEST_CASE("fuse: puts that have grown already") {
  REQUIRE(fused(R"(
    put ch[1].t[0], ch[2].t[0] <- input[0], input[0]
    put ch[3].t[3], ch[3].t[4] <- input[3], input[4])") == R"(
0: put ch[1].t[0], ch[2].t[0], ch[3].t[3], ch[3].t[4] <- input[0], input[0], input[3], input[4]
)");
}

TEST_CASE("fuse: a long chain of copies whose chunks are put takes few tries for each op") {
  Program program = testing::parse(R"(
collective allgather(ranks: 2)
rank r in 0..2 {
  buffer s[1000]
  channel ch = memory(1 - r)
  tb 0 {
    copy s[0] <- input
    for i in 1..1000 { copy s[i] <- s[i - 1] ; put ch.s[i] <- s[i] }
  }
}
)");
  testing::run(program, {"assign"});
  const FuseStats stats = fuse_ops(program);
  CHECK(stats.before == 2 * 1999);
  CHECK(stats.after < stats.before * 3 / 4);  // the puts are joined
  CHECK(stats.tried < 30 * stats.before);
}

TEST_CASE("fuse: gets, packets and unpacking") {
  REQUIRE(fused("get t[0] <- ch[1].input[0] ; get t[1] <- ch[2].input[0]") == R"(
0: get t[0], t[1] <- ch[1].input[0], ch[2].input[0]
)");
  REQUIRE(fused("put_packets ch[1].q[0] <- input[0] ; put_packets ch[2].q[0] <- input[1]") == R"(
0: put_packets ch[1].q[0], ch[2].q[0] <- input[0], input[1]
)");
  REQUIRE(fused("put_packets net[1].q[0] <- k[0] ; put_packets net[2].q[0] <- k[0]") == R"(
0: put_packets net[1].q[0], net[2].q[0] <- k[0], k[0]
)");
  REQUIRE(fused("unpack_packets output[0] <- q[0] ; unpack_packets output[1] <- q[1]") == R"(
0: unpack_packets output[0], output[1] <- q[0], q[1]
)");
}

TEST_CASE("fuse: one source forwarded to several peers") {
  REQUIRE(fused("read_put_packets ch[1].q[0] <- k[0] ; read_put_packets ch[2].q[0] <- k[0]") == R"(
0: read_put_packets ch[1].q[0], ch[2].q[0] <- k[0]
)");
  REQUIRE(fused("read_put_packets net[1].q[0] <- k[0] ; read_put_packets net[2].q[0] <- k[0]") ==
          R"(
0: read_put_packets net[1].q[0], net[2].q[0] <- k[0]
)");
  REQUIRE(keeps("read_put_packets ch[1].q[0] <- k[0] ; read_put_packets ch[2].q[0] <- k[1]"));
  REQUIRE(keeps("read_put_packets ch[1].q[0] <- k[0] ; read_put_packets net[2].q[0] <- k[0]"));
}

TEST_CASE("fuse: signals, waits, flushes and semaphores") {
  REQUIRE(fused(R"(
    signal ch[1] relaxed ; signal ch[2] relaxed
    wait ch[1] relaxed ; wait ch[2] relaxed
    signal ch[1] ; signal ch[2]
    wait ch[1] ; wait ch[2]
    flush net[1] ; flush net[2]
    acquire a ; acquire b
    release a ; release b)") == R"(
0: signal ch[1], ch[2] relaxed
0: wait ch[1], ch[2] relaxed
0: signal ch[1], ch[2]
0: wait ch[1], ch[2]
0: flush net[1], net[2]
0: acquire a, b
0: release a, b
)");
}

TEST_CASE("fuse: puts with signals") {
  REQUIRE(fused(R"(
    put_with_signal net[1].t[0] <- input[0]
    put_with_signal net[2].t[0] <- input[0])") == R"(
0: put_with_signal net[1].t[0], net[2].t[0] <- input[0], input[0]
)");
  // The second signal would say less than it does: that the copy is done, too.
  REQUIRE(keeps(R"(
    put_with_signal net[1].t[0] <- input[0]
    copy output[1] <- input[1]
    put_with_signal net[2].t[0] <- input[0])"));
  // The second one begins when the source of the first is free.
  REQUIRE(keeps(R"(
    put_with_signal_and_flush net[1].t[0] <- input[0]
    put_with_signal_and_flush net[2].t[0] <- input[0])"));
  REQUIRE(fused(R"(
    put_with_signal net[1].t[0] <- input[0]
    flush net[1]
    put_with_signal net[2].t[0] <- input[0])") == R"(
0: put_with_signal_and_flush net[1].t[0] <- input[0]
0: put_with_signal net[2].t[0] <- input[0]
)");
}

TEST_CASE("fuse: not with another number of chunks, kind of channel, or packet format") {
  REQUIRE(keeps("put ch[1].t[0] <- input[0] ; put ch[2].t[0..2] <- input[0..2]"));
  REQUIRE(keeps("put ch[1].t[0] <- input[0] ; put net[2].t[0] <- input[0]"));
  REQUIRE(keeps("get t[0] <- ch[1].s[0] ; get t[1..3] <- ch[2].s[0..2]"));
  REQUIRE(keeps("put_packets ch[1].q[0] <- input[0] ; put_packets ch[2].w[0] <- input[0]"));
  REQUIRE(keeps("unpack_packets output[0] <- q[0] ; unpack_packets output[1] <- w[1]"));
  REQUIRE(keeps("signal ch[1] ; signal net[2]"));
  REQUIRE(keeps("wait ch[1] ; wait net[2]"));
}

TEST_CASE("fuse: relaxed and plain signals stay apart") {
  REQUIRE(keeps("signal ch[1] relaxed ; signal ch[2]"));
  REQUIRE(keeps("wait ch[1] ; wait ch[2] relaxed"));
}

TEST_CASE("fuse: one channel end, or one semaphore, only once in an op") {
  REQUIRE(keeps("signal ch[1] ; signal ch[1]"));
  REQUIRE(keeps("wait ch[1] ; wait ch[1]"));
  REQUIRE(keeps("flush net[1] ; flush net[1]"));
  REQUIRE(keeps("acquire a ; acquire a"));
  REQUIRE(keeps("release a ; release a"));
  REQUIRE(keeps("put net[1].t[0] <- input[0] ; put net[1].t[1] <- input[1]"));
  REQUIRE(keeps(R"(
    put_with_signal net[1].t[0] <- input[0]
    put_with_signal net[1].t[1] <- input[1])"));
  // Memory puts need no channel, only its address.
  REQUIRE(fused("put ch[1].t[0] <- input[0] ; put ch[1].t[1] <- input[1]") == R"(
0: put ch[1].t[0], ch[1].t[1] <- input[0], input[1]
)");
}

TEST_CASE("fuse: not what writes the same chunk") {
  REQUIRE(keeps("put ch[1].t[0] <- input[0] ; put ch[1].t[0] <- input[1]"));
  REQUIRE(keeps("put ch[1].t[0..2] <- input[0..2] ; put ch[1].t[1..3] <- input[2..4]"));
  REQUIRE(keeps("get t[0] <- ch[1].input[0] ; get t[0] <- ch[2].input[0]"));
  REQUIRE(keeps("unpack_packets output[0] <- q[0] ; unpack_packets output[0] <- q[1]"));
}

TEST_CASE("fuse: not what stands in other places") {
  REQUIRE(keeps("tb 0 { put ch[1].t[0] <- input[0] } tb 1 { put ch[2].t[0] <- input[0] }"));
  REQUIRE(keeps("group 0..2 { put ch[1].t[0] <- s[0] } tb 0 { put ch[2].t[0] <- s[0] }"));
  REQUIRE(keeps("group 0..2 { put ch[1].t[0] <- s[0] } group 0..3 { put ch[2].t[0] <- s[0] }"));
  REQUIRE(fused("group 0..2 { put ch[1].t[0] <- s[0] } group 0..2 { put ch[2].t[0] <- s[0] }") ==
          R"(
group: put ch[1].t[0], ch[2].t[0] <- s[0], s[0]
)");
  REQUIRE(keeps("put ch[1].t[0] <- s[0] part: [0, 2] ; put ch[2].t[0] <- s[0] part: [1, 2]"));
  REQUIRE(keeps("put ch[1].t[0] <- s[0] part: [0, 2] ; put ch[2].t[0] <- s[0]"));
  REQUIRE(fused("put ch[1].t[0] <- s[0] part: [1, 2] ; put ch[2].t[0] <- s[0] part: [1, 2]") == R"(
0: put ch[1].t[0], ch[2].t[0] <- s[0], s[0] part: [1, 2]
)");
}

TEST_CASE("fuse: inside a pipeline, not across its edge") {
  REQUIRE(fused(R"(
    put ch[1].t[0] <- s[0]
    pipeline unit: 1KiB {
      put ch[2].t[0] <- s[0]
      put ch[3].t[0] <- s[0]
    }
    pipeline unit: 1KiB { put ch[1].t[1] <- s[1] }
    put ch[1].t[2] <- s[2])") == R"(
0: put ch[1].t[0] <- s[0]
0~ put ch[2].t[0], ch[3].t[0] <- s[0], s[0]
0~ put ch[1].t[1] <- s[1]
0: put ch[1].t[2] <- s[2]
)");
}

TEST_CASE("fuse: locations of all parts are kept") {
  Program program = testing::parse(World{}.text(R"(tb 0 {
    put ch[1].t[0] <- input[0]
    signal ch[1]
    wait ch[1]
    for p in [1, 2, 3] { put ch[p].t[0] <- input[0] }
    put ch[1].t[1] <- input[1]
  })"));
  fuse_ops(program);
  const Op& op = program.ranks[0].ops.back();
  REQUIRE(op.dsts == 4);
  REQUIRE(op.locations.count == 4);
  REQUIRE(print_location(program, op) == "t.mscl:25:26 (r = 0, p = 1)");
  const Location& last = program.locations[op.locations.first + 3];
  REQUIRE(program.sites[last.site].line == 26);
}

}  // namespace mscclc
