// Values that need not be put down in between: forms `through` and `retarget`.
#include <catch2/catch.hpp>

#include "passes/fuse/fuse_test_text.h"

namespace mscclc {

using testing::fused;
using testing::keeps;
using testing::World;

TEST_CASE("fuse: copies into scratch") {
  REQUIRE(fused("copy t[0] <- input[0] ; put ch[1].s[0] <- t[0]") == R"(
0: put ch[1].s[0] <- input[0]
)");
  REQUIRE(fused("copy t[0] <- input[0] ; copy t[1] <- t[0] ; copy output[0] <- t[1]") == R"(
0: copy output[0] <- input[0]
)");
  REQUIRE(fused("copy t[0] <- input[0] ; copy_packets q[0] <- t[0]") == R"(
0: copy_packets q[0] <- input[0]
)");
  REQUIRE(fused("copy t[0] <- input[0] ; put_packets ch[1].q[0] <- t[0]") == R"(
0: put_packets ch[1].q[0] <- input[0]
)");
  REQUIRE(fused("copy t[0] <- input[0] ; switch_broadcast sw.s[0] <- t[0]") == R"(
0: switch_broadcast sw.s[0] <- input[0]
)");
}

TEST_CASE("fuse: a copy that several puts take") {
  REQUIRE(fused(R"(
    copy t[0] <- input[0]
    put ch[1].s[0] <- t[0]
    put ch[2].s[0] <- t[0])") == R"(
0: put ch[1].s[0], ch[2].s[0] <- input[0], input[0]
)");
}

TEST_CASE("fuse: copies that sums take") {
  REQUIRE(fused("copy t[0] <- input[0] ; reduce output[0] <- s[0], t[0]") == R"(
0: reduce output[0] <- s[0], input[0]
)");
  REQUIRE(fused("copy t[0] <- input[0] ; read_reduce output[0] <- t[0], ch[1].s[0]") == R"(
0: read_reduce output[0] <- input[0], ch[1].s[0]
)");
  REQUIRE(fused("copy t[0] <- input[0] ; reduce_packets output[0] <- q[0], t[0]") == R"(
0: reduce_packets output[0] <- q[0], input[0]
)");
  REQUIRE(fused("copy t[0] <- input[0] ; reduce_send output[0], ch[1].s[0] <- s[0], t[0]") == R"(
0: reduce_send output[0], ch[1].s[0] <- s[0], input[0]
)");
  REQUIRE(fused(R"(
    copy t[0] <- input[0]
    read_reduce_send output[0], ch[1].s[0] <- t[0], ch[1].s[1])") == R"(
0: read_reduce_send output[0], ch[1].s[0] <- input[0], ch[1].s[1]
)");
  for (const char* dsts : {"send_packets output[0], ch[1].q[1]", "copy_packets output[0], k[1]",
                           "copy_send_packets output[0], k[1], ch[1].q[1]"}) {
    const std::string op = "reduce_" + std::string(dsts) + " <- q[0], ";
    REQUIRE(fused("copy t[0] <- input[0] ; " + op + "t[0]") == "\n0: " + op + "input[0]\n");
  }
}

TEST_CASE("fuse: what is fetched to be added is read in the sum") {
  REQUIRE(fused(R"(
    get t[0] <- ch[1].input[0]
    get t[1] <- ch[2].input[0]
    reduce output[0] <- input[0], t[0], t[1])") == R"(
0: read_reduce output[0] <- input[0], ch[1].input[0], ch[2].input[0]
)");
  REQUIRE(fused(R"(
    get t[0] <- ch[1].input[0]
    reduce_send output[0], ch[1].output[0] <- input[0], t[0])") == R"(
0: read_reduce_send output[0], ch[1].output[0] <- input[0], ch[1].input[0]
)");
  // The first source of such a sum is here, all others are not.
  REQUIRE(keeps("get t[0] <- ch[1].input[0] ; reduce output[0] <- t[0], input[0]"));
  REQUIRE(keeps("get t[0] <- ch[1].input[0] ; reduce output[0] <- input[0], t[0], s[0]"));
}

TEST_CASE("fuse: what is unpacked to be added is taken from the packets") {
  REQUIRE(fused(R"(
    unpack_packets t[0] <- q[0]
    unpack_packets t[1] <- q[1]
    reduce output[0] <- t[0], input[0], t[1])") == R"(
0: reduce_packets output[0] <- q[0], input[0], q[1]
)");
  REQUIRE(keeps(R"(
    unpack_packets t[0] <- q[0]
    reduce output[0] <- input[0], t[0], s[0])"));
  REQUIRE(keeps(R"(
    unpack_packets t[0] <- q[0]
    unpack_packets t[1] <- w[0]
    reduce output[0] <- input[0], t[0], t[1])"));
}

TEST_CASE("fuse: packets that are unpacked to be sent on") {
  REQUIRE(fused(R"(
    unpack_packets t[0] <- q[0]
    put_packets ch[1].q[1] <- t[0]
    put_packets ch[2].q[1] <- t[0])") == R"(
0: read_put_packets ch[1].q[1], ch[2].q[1] <- q[0]
)");
  REQUIRE(keeps("unpack_packets t[0] <- q[0] ; put_packets ch[1].w[1] <- t[0]"));
  REQUIRE(keeps("unpack_packets t[0] <- q[0] ; put_packets ch[1].q[1], ch[2].q[1] <- t[0], s[0]"));
}

TEST_CASE("fuse: packets that are made to be taken again") {
  REQUIRE(fused("copy_packets k[0] <- input[0] ; read_put_packets ch[1].q[0] <- k[0]") == R"(
0: put_packets ch[1].q[0] <- input[0]
)");
  REQUIRE(fused(R"(
    copy_packets k[0] <- input[0]
    read_put_packets ch[1].q[0], ch[2].q[0] <- k[0])") == R"(
0: put_packets ch[1].q[0], ch[2].q[0] <- input[0], input[0]
)");
  REQUIRE(fused("copy_packets k[0] <- input[0] ; unpack_packets output[0] <- k[0]") == R"(
0: copy output[0] <- input[0]
)");
  REQUIRE(keeps("copy_packets k[0] <- input[0] ; read_put_packets net[1].q[0] <- k[0]"));
}

TEST_CASE("fuse: results that are copied out of scratch") {
  REQUIRE(fused("reduce t[0] <- input[0], s[0] ; copy output[0] <- t[0]") == R"(
0: reduce output[0] <- input[0], s[0]
)");
  REQUIRE(fused(R"(
    reduce t[0] <- input[0], s[0]
    put ch[1].u[0] <- t[0]
    copy output[0] <- t[0])") == R"(
0: reduce_send output[0], ch[1].u[0] <- input[0], s[0]
)");
  REQUIRE(fused("read_reduce t[0] <- input[0], ch[1].s[0] ; copy output[0] <- t[0]") == R"(
0: read_reduce output[0] <- input[0], ch[1].s[0]
)");
  REQUIRE(fused(R"(
    read_reduce_send t[0], ch[1].u[0] <- input[0], ch[1].s[0]
    copy output[0] <- t[0])") == R"(
0: read_reduce_send output[0], ch[1].u[0] <- input[0], ch[1].s[0]
)");
  REQUIRE(fused("switch_reduce t[0] <- sw.input[0] ; copy output[0] <- t[0]") == R"(
0: switch_reduce output[0] <- sw.input[0]
)");
  for (const char* dsts : {"packets t[0]", "send_packets t[0], ch[1].q[1]",
                           "copy_packets t[0], k[1]", "copy_send_packets t[0], k[1], ch[1].q[1]"}) {
    std::string op = "reduce_" + std::string(dsts) + " <- input[0], q[0]", out = op;
    out.replace(out.find("t[0]"), 4, "output[0]");
    REQUIRE(fused(op + " ; copy output[0] <- t[0]") == "\n0: " + out + "\n");
  }
}

TEST_CASE("fuse: what comes in is put where it is wanted") {
  REQUIRE(fused("get t[0] <- ch[1].input[0] ; copy output[0] <- t[0]") == R"(
0: get output[0] <- ch[1].input[0]
)");
  REQUIRE(fused(R"(
    get t[0] <- ch[1].input[0]
    get t[1] <- ch[2].input[1]
    copy output[0] <- t[0]
    copy output[1] <- t[1])") == R"(
0: get output[0], output[1] <- ch[1].input[0], ch[2].input[1]
)");
  REQUIRE(fused("unpack_packets t[0] <- q[0] ; copy output[0] <- t[0]") == R"(
0: unpack_packets output[0] <- q[0]
)");
}

TEST_CASE("fuse: not if others read the scratch") {
  REQUIRE(keeps(
      "tb 0 { copy t[0] <- input[0] ; put ch[1].s[0] <- t[0] } tb 1 { put ch[2].s[0] <- t[0] }"));
  REQUIRE(keeps(
      "copy t[0] <- input[0] ; put ch[1].s[0] <- t[0] ; reduce output[0] <- output[0], t[0..1]"));
  REQUIRE(
      keeps("reduce t[0] <- input[0], s[0] ; copy output[0] <- t[0] ; put net[1].s[0] <- t[0]"));
  REQUIRE(keeps("get t[0] <- ch[1].input[0] ; copy output[0] <- t[0] ; copy output[1] <- t[0]"));
  const World reader{.others = "if r == 1 { get s[0] <- ch[0].t[0] }"};
  REQUIRE(reader.keeps("copy t[0] <- input[0] ; put ch[1].s[0] <- t[0]"));
  const World adder{.others = "if r == 3 { switch_reduce s[0] <- sw.t[0] }"};
  REQUIRE(adder.keeps("copy t[0] <- input[0] ; put ch[1].s[0] <- t[0]"));
  const World taker{.others = "if r == 1 { read_reduce s[0] <- s[1], ch[0].t[0] }"};
  REQUIRE(taker.keeps("reduce t[0] <- input[0], s[0] ; copy output[0] <- t[0]"));
}

TEST_CASE("fuse: not if it is no scratch, or not the same chunks") {
  REQUIRE(keeps("copy output[0] <- input[0] ; put ch[1].s[0] <- output[0]"));
  const World even{.contract = "allgather(ranks: 4)"};
  REQUIRE(even.keeps("get output[0] <- ch[1].input[0] ; copy output[1] <- output[0]"));
  REQUIRE(keeps("copy t[0..2] <- input[0..2] ; put ch[1].s[0] <- t[0]"));
  REQUIRE(keeps("get t[0..2] <- ch[1].s[0..2] ; copy s[4] <- t[1]"));
}

TEST_CASE("fuse: not if a part of what is fetched goes elsewhere") {
  REQUIRE(keeps(R"(
    get t[0], t[1] <- ch[1].s[0], ch[2].s[0]
    reduce output[0] <- input[0], t[0]
    put ch[3].s[0] <- t[1])"));
}

TEST_CASE("fuse: not if sizes would not agree") {
  REQUIRE(keeps("copy t[0] <- input[0] ; put ch[1].output[1] <- t[0]"));
  REQUIRE(keeps("get t[0] <- ch[1].input[0] ; copy output[1] <- t[0]"));
  REQUIRE(keeps("reduce t[0] <- input[0], s[0] ; copy output[1] <- t[0]"));
  // The peer's copy would end where output[0] does.
  REQUIRE(keeps("reduce_send t[0], ch[1].u[0] <- s[1], s[0] ; copy output[0] <- t[0]"));
}

TEST_CASE("fuse: not if the source changes before it is taken") {
  REQUIRE(keeps(R"(
    copy t[0] <- s[0]
    get s[0] <- ch[1].input[0]
    put ch[1].s[1], ch[1].s[0] <- t[0], s[0])"));
  REQUIRE(keeps(R"(
    copy t[0] <- s[0]
    signal ch[1] ; wait ch[1]
    put ch[1].s[1] <- t[0])"));
}

TEST_CASE("fuse: not if the target is still in use") {
  REQUIRE(keeps(R"(
    get t[0] <- ch[1].s[0]
    put ch[1].s[1] <- u[0]
    get u[0] <- ch[1].s[2]
    put ch[2].s[1] <- u[0]
    copy u[0] <- t[0]
    put ch[3].s[1] <- u[0])"));
  // The sum would overwrite what it has still to read.
  REQUIRE(keeps("reduce t[0..2] <- s[0..2], u[0..2] ; copy u[1..3] <- t[0..2]"));
  REQUIRE(fused("reduce t[0..2] <- s[0..2], u[0..2] ; copy u[0..2] <- t[0..2]") == R"(
0: reduce u[0..2] <- s[0..2], u[0..2]
)");
}

// A port reads later; until a flush the copy keeps what the source held.
TEST_CASE("fuse: not a copy for a port") {
  REQUIRE(keeps("copy t[0] <- input[0] ; put net[1].s[0] <- t[0]"));
}

}  // namespace mscclc
