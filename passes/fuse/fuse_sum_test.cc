// One sum instead of several: form `sum`.
#include <catch2/catch.hpp>

#include "passes/fuse/fuse_test_text.h"

namespace mscclc {

using testing::fused;
using testing::keeps;
using testing::World;

TEST_CASE("fuse: a sum made step by step, in the same order") {
  REQUIRE(fused(R"(
    reduce output[0] <- input[0], s[1]
    reduce output[0] <- output[0], s[0], t[0]
    reduce output[0] <- output[0], u[0])") == R"(
0: reduce output[0] <- input[0], s[1], s[0], t[0], u[0]
)");
  REQUIRE(fused(R"(
    read_reduce output[0] <- input[0], ch[2].input[0]
    read_reduce output[0] <- output[0], ch[1].input[0])") == R"(
0: read_reduce output[0] <- input[0], ch[2].input[0], ch[1].input[0]
)");
  REQUIRE(fused(R"(
    reduce_packets output[0] <- q[2], input[0]
    reduce_packets output[0] <- output[0], q[1], q[0])") == R"(
0: reduce_packets output[0] <- q[2], input[0], q[1], q[0]
)");
}

TEST_CASE("fuse: a sum that begins with a copy") {
  REQUIRE(fused("copy output[0] <- input[0] ; reduce output[0] <- output[0], s[0]") == R"(
0: reduce output[0] <- input[0], s[0]
)");
  REQUIRE(fused("copy output[0] <- input[0] ; read_reduce output[0] <- output[0], ch[1].s[0]") ==
          R"(
0: read_reduce output[0] <- input[0], ch[1].s[0]
)");
  REQUIRE(fused("copy output[0] <- input[0] ; reduce_packets output[0] <- output[0], q[0]") == R"(
0: reduce_packets output[0] <- input[0], q[0]
)");
}

TEST_CASE("fuse: a sum that ends in a fused op") {
  REQUIRE(fused(R"(
    reduce output[0] <- input[0], s[0]
    reduce_send output[0], ch[1].output[0] <- output[0], t[0])") == R"(
0: reduce_send output[0], ch[1].output[0] <- input[0], s[0], t[0]
)");
  REQUIRE(fused(R"(
    read_reduce output[0] <- input[0], ch[1].s[0]
    read_reduce_send output[0], ch[1].t[0] <- output[0], ch[2].s[0])") == R"(
0: read_reduce_send output[0], ch[1].t[0] <- input[0], ch[1].s[0], ch[2].s[0]
)");
  for (const std::string kind : {"send", "copy", "copy_send"}) {
    const std::string dsts = kind == "send"   ? ", ch[1].q[0]"
                             : kind == "copy" ? ", k[0]"
                                              : ", k[0], ch[1].q[0]";
    const std::string op = "reduce_" + kind + "_packets output[0]" + dsts + " <- ";
    REQUIRE(fused("reduce_packets output[0] <- input[0], q[0] ; " + op + "output[0], q[1]") ==
            "\n0: " + op + "input[0], q[0], q[1]\n");
    REQUIRE(fused("copy output[0] <- input[0] ; " + op + "output[0], q[1]") ==
            "\n0: " + op + "input[0], q[1]\n");
  }
  REQUIRE(fused(R"(
    copy output[0] <- input[0]
    reduce_send output[0], ch[1].output[0] <- output[0], t[0])") == R"(
0: reduce_send output[0], ch[1].output[0] <- input[0], t[0]
)");
  REQUIRE(fused(R"(
    copy output[0] <- input[0]
    read_reduce_send output[0], ch[1].t[0] <- output[0], ch[2].s[0])") == R"(
0: read_reduce_send output[0], ch[1].t[0] <- input[0], ch[2].s[0]
)");
}

TEST_CASE("fuse: trees stay what they are") {
  // A tree of three is neither a tree of two, and then another one, nor the other way round.
  REQUIRE(keeps(R"(
    reduce output[0] <- input[0], s[1]
    reduce output[0] <- output[0], s[0], t[0], u[0] tree)"));
  REQUIRE(keeps(R"(
    reduce output[0] <- input[0], s[1], s[0], t[0] tree
    reduce output[0] <- output[0], u[0])"));
  REQUIRE(keeps(R"(
    reduce output[0] <- input[0], s[1] tree
    reduce output[0] <- output[0], u[0] tree)"));
  REQUIRE(keeps(R"(
    reduce_packets output[0] <- input[0], q[1] tree
    reduce_packets output[0] <- output[0], q[0], q[2])"));
}

TEST_CASE("fuse: what only moves goes with a tree") {
  REQUIRE(fused(R"(
    copy output[0] <- input[0]
    reduce output[0] <- output[0], s[0], t[0], u[0] tree)") == R"(
0: reduce output[0] <- input[0], s[0], t[0], u[0] tree
)");
  REQUIRE(fused(R"(
    reduce output[0] <- input[0], s[0], t[0], u[0] tree
    put ch[1].output[0], ch[2].output[0] <- output[0], output[0])") == R"(
0: reduce_send output[0], ch[1].output[0], ch[2].output[0] <- input[0], s[0], t[0], u[0] tree
)");
  REQUIRE(fused(R"(
    get s[0], s[1], s[2] <- ch[1].t[0], ch[2].t[0], ch[3].t[0]
    reduce output[0] <- input[0], s[0], s[1], s[2] tree, op: min)") == R"(
0: read_reduce output[0] <- input[0], ch[1].t[0], ch[2].t[0], ch[3].t[0] op: min, tree
)");
  REQUIRE(fused(R"(
    unpack_packets s[0], s[1], s[2] <- q[0], q[1], q[2]
    reduce output[0] <- s[0], input[0], s[1], s[2] tree)") == R"(
0: reduce_packets output[0] <- q[0], input[0], q[1], q[2] tree
)");
  REQUIRE(fused(R"(
    reduce_packets output[0] <- input[0], q[0], q[1], q[2] tree
    put_packets ch[1].k[0] <- output[0])") == R"(
0: reduce_send_packets output[0], ch[1].k[0] <- input[0], q[0], q[1], q[2] tree
)");
  REQUIRE(fused(R"(
    reduce s[0] <- input[0], t[0], u[0], u[1] tree
    copy output[0] <- s[0])") == R"(
0: reduce output[0] <- input[0], t[0], u[0], u[1] tree
)");
}

// The peer makes a + b + c of this.
TEST_CASE("fuse: not a second sum over the same first source") {
  REQUIRE(keeps("reduce output[0] <- input[0], s[0] ; reduce output[0] <- input[0], t[0]"));
  REQUIRE(keeps(R"(
    read_reduce output[0] <- input[0], ch[1].s[0]
    read_reduce output[0] <- input[0], ch[2].s[0])"));
  REQUIRE(keeps("reduce_packets output[0] <- s[0], q[0] ; reduce_packets output[0] <- s[0], q[1]"));
}

TEST_CASE("fuse: not a sum that goes elsewhere, or adds the first one later") {
  REQUIRE(keeps("reduce output[0] <- input[0], s[0] ; reduce output[1] <- output[1], s[1]"));
  REQUIRE(keeps("reduce s[0] <- s[1], s[2] ; reduce t[0] <- s[0], s[3]"));
  REQUIRE(keeps("reduce output[0] <- input[0], s[0] ; reduce output[0] <- s[1], output[0]"));
  REQUIRE(keeps(R"(
    reduce_packets output[0] <- input[0], q[0]
    reduce_packets output[0] <- q[1], output[0])"));
}

TEST_CASE("fuse: not a sum that is added twice") {
  REQUIRE(keeps("reduce s[0] <- s[1], s[2] ; reduce s[0] <- s[0], s[0]"));
  // In place input[0] is output[0].
  REQUIRE(keeps("reduce output[0] <- s[0], s[1] ; reduce output[0] <- output[0], input[0]"));
  const World apart{.contract = "allreduce(ranks: 4, chunks: 8, inplace: false)"};
  REQUIRE(apart.fused(R"(
    reduce output[0] <- s[0], s[1]
    reduce output[0] <- output[0], input[0])") == R"(
0: reduce output[0] <- s[0], s[1], input[0]
)");
}

TEST_CASE("fuse: not sums of another reduction or packet format") {
  REQUIRE(keeps("reduce s[0] <- s[1], s[2] op: min ; reduce s[0] <- s[0], s[3] op: max"));
  REQUIRE(keeps("reduce s[0] <- s[1], s[2] ; reduce s[0] <- s[0], s[3] op: sum"));
  REQUIRE(fused("reduce s[0] <- s[1], s[2] op: min ; reduce s[0] <- s[0], s[3] op: min") == R"(
0: reduce s[0] <- s[1], s[2], s[3] op: min
)");
  REQUIRE(fused("copy s[0] <- s[1] ; reduce s[0] <- s[0], s[3] op: min") == R"(
0: reduce s[0] <- s[1], s[3] op: min
)");
  REQUIRE(keeps("reduce_packets s[0] <- s[1], q[0] ; reduce_packets s[0] <- s[0], w[0]"));
}

TEST_CASE("fuse: not a sum whose first part others look at") {
  REQUIRE(keeps(R"(
    tb 0 { reduce output[0] <- input[0], s[0] }
    tb 1 { copy t[0] <- output[0] }
    tb 0 { reduce output[0] <- output[0], s[1] }
    tb 1 { copy u[0] <- t[0] ; put ch[1].s[3] <- t[0] })"));
  REQUIRE(keeps(R"(
    reduce output[0] <- input[0], s[0]
    put net[1].t[0] <- output[0]
    reduce output[0] <- output[0], s[1])"));
  // What has been sent on is not the whole sum.
  REQUIRE(keeps(R"(
    reduce_send output[0], ch[1].t[0] <- input[0], s[0]
    reduce output[0] <- output[0], s[1])"));
  REQUIRE(keeps(R"(
    reduce_copy_packets output[0], k[0] <- input[0], q[0]
    reduce_packets output[0] <- output[0], q[1])"));
}

TEST_CASE("fuse: not sums of memory here and at far ends") {
  REQUIRE(keeps(R"(
    reduce output[0] <- input[0], s[0]
    read_reduce output[0] <- output[0], ch[1].s[0])"));
  REQUIRE(keeps(R"(
    reduce output[0] <- input[0], s[0]
    reduce_packets output[0] <- output[0], q[0])"));
}

TEST_CASE("fuse: not sums in scratch of chunks that may differ in size") {
  REQUIRE(keeps("reduce t[0] <- input[0], s[0] ; reduce t[0] <- t[0], input[1]"));
  const World even{.contract = "allreduce(ranks: 4, chunks: 1)"};
  REQUIRE(even.fused("reduce t[0] <- input[0], s[0] ; reduce t[0] <- t[0], output[0]") == R"(
0: reduce t[0] <- input[0], s[0], output[0]
)");
}

// The second packets may be an answer to what tb 1 sends once it may overwrite s[0].
TEST_CASE("fuse: not packet sums if others wait for the first one") {
  REQUIRE(keeps(R"(
    tb 0 {
      reduce_packets output[0] <- s[0], q[0]
      reduce_packets output[0] <- output[0], q[1]
    }
    tb 1 { get s[0] <- ch[1].t[0] ; put_packets ch[1].q[1] <- s[0] })"));
  REQUIRE(!keeps(R"(
    tb 0 {
      reduce_packets output[0] <- s[0], q[0]
      reduce_packets output[0] <- output[0], q[1]
    }
    tb 1 { get s[1] <- ch[1].t[0] ; put_packets ch[1].q[1] <- s[1] })"));
}

TEST_CASE("fuse: not packet sums with anything between them") {
  REQUIRE(keeps(R"(
    reduce_packets output[0] <- s[0], q[0]
    put_packets ch[1].q[0] <- s[1]
    reduce_packets output[0] <- output[0], q[1])"));
  // The copy can wait for them.
  REQUIRE(fused(R"(
    copy output[0] <- s[0]
    put_packets ch[1].q[0] <- s[1]
    reduce_packets output[0] <- output[0], q[1])") == R"(
0: put_packets ch[1].q[0] <- s[1]
0: reduce_packets output[0] <- s[0], q[1]
)");
}

}  // namespace mscclc
