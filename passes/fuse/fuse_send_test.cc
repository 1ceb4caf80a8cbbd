// A result and where it goes: forms `send`, `forward`, `queue` and `exchange`.
#include <catch2/catch.hpp>

#include "passes/fuse/fuse_test_text.h"

namespace mscclc {

using testing::fused;
using testing::keeps;
using testing::World;

TEST_CASE("fuse: sums and the puts of them") {
  REQUIRE(fused(R"(
    reduce output[0] <- input[0], s[0]
    put ch[1].output[0] <- output[0]
    put ch[2].t[0] <- output[0])") == R"(
0: reduce_send output[0], ch[1].output[0], ch[2].t[0] <- input[0], s[0]
)");
  REQUIRE(fused(R"(
    read_reduce output[0] <- input[0], ch[1].input[0]
    put ch[1].output[0] <- output[0]
    put ch[2].output[0] <- output[0])") == R"(
0: read_reduce_send output[0], ch[1].output[0], ch[2].output[0] <- input[0], ch[1].input[0]
)");
  REQUIRE(fused(R"(
    reduce output[0] <- input[0], s[0]
    put ch[1].output[0], ch[2].output[0] <- output[0], output[0])") == R"(
0: reduce_send output[0], ch[1].output[0], ch[2].output[0] <- input[0], s[0]
)");
}

TEST_CASE("fuse: packet sums and where they go") {
  REQUIRE(fused(R"(
    reduce_packets output[0] <- input[0], q[0]
    put ch[1].output[0] <- output[0]
    put ch[2].output[0] <- output[0])") == R"(
0: reduce_packets_put output[0], ch[1].output[0], ch[2].output[0] <- input[0], q[0]
)");
}

TEST_CASE("fuse: packet sums and the packets made of them") {
  REQUIRE(fused(R"(
    reduce_packets output[0] <- input[0], q[0]
    put_packets ch[1].k[0] <- output[0]
    put_packets ch[2].k[0] <- output[0])") == R"(
0: reduce_send_packets output[0], ch[1].k[0], ch[2].k[0] <- input[0], q[0]
)");
  REQUIRE(fused("reduce_packets output[0] <- input[0], q[0] ; copy_packets k[0] <- output[0]") ==
          R"(
0: reduce_copy_packets output[0], k[0] <- input[0], q[0]
)");
  const std::string both = R"(
0: reduce_copy_send_packets output[0], k[0], ch[1].k[1], ch[2].k[1] <- input[0], q[0]
)";
  REQUIRE(fused(R"(
    reduce_packets output[0] <- input[0], q[0]
    copy_packets k[0] <- output[0]
    put_packets ch[1].k[1] <- output[0]
    put_packets ch[2].k[1] <- output[0])") == both);
  REQUIRE(fused(R"(
    reduce_packets output[0] <- input[0], q[0]
    put_packets ch[1].k[1] <- output[0]
    copy_packets k[0] <- output[0]
    put_packets ch[2].k[1] <- output[0])") == both);
}

TEST_CASE("fuse: packets that are kept and forwarded") {
  const std::string body = R"(
    reduce_packets output[0] <- input[0], q[0]
    copy_packets k[0] <- output[0]
    read_put_packets ch[1].k[1] <- k[0]
    read_put_packets ch[2].k[1] <- k[0])";
  REQUIRE(fused(body) == R"(
0: reduce_send_packets output[0], ch[1].k[1], ch[2].k[1] <- input[0], q[0]
)");
  REQUIRE(fused(body + "\nunpack_packets output[1] <- k[0]") == R"(
0: reduce_copy_send_packets output[0], k[0], ch[1].k[1], ch[2].k[1] <- input[0], q[0]
0: unpack_packets output[1] <- k[0]
)");
}

TEST_CASE("fuse: a sentinel slot has one reader, with whom it is gone") {
  REQUIRE(fused(R"(
    reduce_packets output[0] <- input[0], z[0]
    copy_packets z[1] <- output[0]
    read_put_packets ch[1].z[2] <- z[1])") == R"(
0: reduce_send_packets output[0], ch[1].z[2] <- input[0], z[0]
)");
  REQUIRE(keeps(R"(
    reduce_copy_packets output[0], z[1] <- input[0], z[0]
    read_put_packets ch[1].z[2] <- z[1]
    unpack_packets output[1] <- z[1])"));
}

TEST_CASE("fuse: no op that takes from a sentinel slot and stores into it") {
  REQUIRE(keeps(R"(
    reduce_packets output[0] <- input[0], z[0]
    copy_packets z[0] <- output[0])"));
  REQUIRE(keeps(R"(
    reduce_packets output[0..2] <- input[0..2], z[0..2]
    copy_packets z[1..3] <- output[0..2])"));
  REQUIRE(fused(R"(
    reduce_packets output[0] <- input[0], q[0]
    copy_packets q[0] <- output[0])") == R"(
0: reduce_copy_packets output[0], q[0] <- input[0], q[0]
)");
  // What is kept there only to be sent on is not kept.
  REQUIRE(keeps(R"(
    reduce_packets output[0] <- input[0], z[0]
    copy_packets z[0] <- output[0]
    read_put_packets ch[1].z[2] <- z[0])"));
}

TEST_CASE("fuse: no op that takes from a sentinel slot twice") {
  REQUIRE(keeps("unpack_packets s[0] <- z[0] ; unpack_packets s[1] <- z[0]"));
  REQUIRE(fused("unpack_packets s[0] <- q[0] ; unpack_packets s[1] <- q[0]") == R"(
0: unpack_packets s[0], s[1] <- q[0], q[0]
)");
  REQUIRE(keeps(R"(
    reduce_packets output[0] <- input[0], z[0]
    reduce_packets output[0] <- output[0], z[0])"));
  REQUIRE(keeps("read_put_packets ch[1].z[1] <- z[0] ; read_put_packets ch[2].z[1] <- z[0]"));
  REQUIRE(keeps("unpack_packets s[0] <- z[0] ; reduce output[0] <- s[0], s[0], input[0]"));
  REQUIRE(fused("unpack_packets s[0] <- q[0] ; reduce output[0] <- s[0], s[0], input[0]") == R"(
0: reduce_packets output[0] <- q[0], q[0], input[0]
)");
  REQUIRE(fused("unpack_packets s[0] <- z[0] ; unpack_packets s[1] <- z[1]") == R"(
0: unpack_packets s[0], s[1] <- z[0], z[1]
)");
}

// In place such a copy is no access, and out of place it is one: the fused op touches what the
// other one touches in both.
TEST_CASE("fuse: a copy that is onto itself in place brings no access to another op") {
  REQUIRE(fused("copy output[0] <- input[0] ; reduce output[0] <- output[0], s[0]") == R"(
0: reduce output[0] <- input[0], s[0]
)");
  REQUIRE(keeps("copy output[0] <- input[0] ; put_packets ch[1].q[0] <- output[0]"));
  REQUIRE(keeps("copy output[0] <- input[0] ; unpack_packets s[0] <- q[0]"));
  REQUIRE(keeps("copy output[0] <- input[0] ; put ch[1].s[0] <- output[0]"));
  // It is not moved past what touches its chunk either way.
  REQUIRE(keeps(R"(
    copy output[0] <- input[0]
    unpack_packets output[0] <- q[0]
    reduce output[0] <- output[0], s[0])"));
}

TEST_CASE("fuse: not what else is sent, or another way") {
  REQUIRE(keeps("reduce output[0] <- input[0], s[0] ; put ch[1].output[1] <- output[1]"));
  REQUIRE(keeps("reduce s[0..2] <- t[0..2], u[0..2] ; put ch[1].t[0] <- s[0]"));
  REQUIRE(keeps("reduce output[0] <- input[0], s[0] ; put net[1].output[0] <- output[0]"));
  REQUIRE(keeps("reduce output[0] <- input[0], s[0] ; put_packets ch[1].q[0] <- output[0]"));
  REQUIRE(keeps("reduce_packets output[0] <- input[0], q[0] ; put net[1].output[0] <- output[0]"));
  REQUIRE(keeps(R"(
    reduce_packets output[0] <- input[0], q[0]
    put ch[1].t[0], ch[1].t[1] <- output[0], s[0])"));
}

// In place both are the same memory; out of place they are not.
TEST_CASE("fuse: not a chunk of the other buffer, even if it may coincide") {
  REQUIRE(keeps("reduce output[0] <- s[0], s[1] ; put ch[1].t[0] <- input[0]"));
}

TEST_CASE("fuse: not packets of another format, or through ports") {
  REQUIRE(keeps(R"(
    reduce_packets output[0] <- input[0], q[0]
    put_packets ch[1].w[0] <- output[0])"));
  REQUIRE(keeps("reduce_packets output[0] <- input[0], q[0] ; copy_packets w[0] <- output[0]"));
  REQUIRE(keeps(R"(
    reduce_copy_packets output[0], k[0] <- input[0], q[0]
    read_put_packets net[1].k[1] <- k[0])"));
  REQUIRE(keeps(R"(
    reduce_copy_packets output[0], k[0] <- input[0], q[0]
    put_packets net[1].k[1] <- k[0])"));
}

TEST_CASE("fuse: not packets that are kept somewhere else") {
  REQUIRE(keeps(R"(
    reduce_copy_packets output[0], k[0] <- input[0], q[0]
    read_put_packets ch[1].k[1] <- k[1])"));
  // One op keeps them in one slot only.
  REQUIRE(fused(R"(
    reduce_packets output[0] <- input[0], q[0]
    copy_packets k[0] <- output[0]
    copy_packets k[1] <- output[0])") == R"(
0: reduce_copy_packets output[0], k[0] <- input[0], q[0]
0: copy_packets k[1] <- output[0]
)");
}

TEST_CASE("fuse: not a result that is overwritten before it goes") {
  REQUIRE(keeps(R"(
    reduce output[0] <- input[0], s[0]
    get output[0] <- ch[2].s[0]
    put ch[1].output[0] <- output[0])"));
  REQUIRE(keeps(R"(
    tb 0 { reduce output[0] <- input[0], s[0] }
    tb 1 { get output[0] <- ch[2].s[0] }
    tb 0 { put ch[1].output[0] <- output[0] })"));
  REQUIRE(keeps(R"(
    tb 0 { reduce output[0] <- input[0], s[0] }
    tb 1 { put ch[1].output[0] <- output[0] })"));
  // By a peer, perhaps, which gets a signal that it may.
  REQUIRE(keeps(R"(
    reduce output[0] <- input[0], s[0]
    signal ch[1] ; wait ch[1]
    put ch[2].output[0] <- output[0])"));
}

TEST_CASE("fuse: a result that others read meanwhile") {
  REQUIRE(fused(R"(
    tb 0 { reduce output[0] <- input[0], s[0] }
    tb 1 { put ch[2].t[0] <- output[0] }
    tb 0 { put ch[1].output[0] <- output[0] })") == R"(
0: reduce_send output[0], ch[1].output[0] <- input[0], s[0]
1: put ch[2].t[0] <- output[0]
)");
}

TEST_CASE("fuse: what is read at a far end is overwritten element by element, or not at all") {
  REQUIRE(fused(R"(
    read_reduce s[0..2] <- t[0..2], ch[1].u[0..2]
    put ch[1].u[0..2] <- s[0..2])") == R"(
0: read_reduce_send s[0..2], ch[1].u[0..2] <- t[0..2], ch[1].u[0..2]
)");
  REQUIRE(keeps(R"(
    read_reduce s[0..2] <- t[0..2], ch[1].u[0..2]
    put ch[1].u[1..3] <- s[0..2])"));
  // The caller's chunks are of the same memory in place, and lie alike.
  REQUIRE(fused(R"(
    read_reduce output[0] <- input[0], ch[1].input[0]
    put ch[1].output[0] <- output[0])") == R"(
0: read_reduce_send output[0], ch[1].output[0] <- input[0], ch[1].input[0]
)");
}

TEST_CASE(
    "fuse: sums in scratch and chunks of the caller are equally long, or nothing else cares") {
  REQUIRE(fused("reduce s[0] <- t[0], u[0] ; put ch[1].output[0] <- s[0]") == R"(
0: reduce_send s[0], ch[1].output[0] <- t[0], u[0]
)");
  // s[0] would be written as far as output[0] is long.
  REQUIRE(keeps(R"(
    reduce s[0] <- t[0], u[0]
    put ch[1].output[0] <- s[0]
    reduce output[1] <- output[1], s[0])"));
  REQUIRE(keeps(R"(
    reduce_send s[0], ch[2].t[0] <- t[0], u[0]
    put ch[1].output[0] <- s[0])"));
  REQUIRE(keeps("reduce s[0] <- input[0], u[0] ; put ch[1].output[1] <- s[0]"));
  REQUIRE(fused(R"(
    reduce s[0] <- input[0], u[0]
    put ch[1].output[0] <- s[0]
    put ch[2].t[0] <- s[0])") == R"(
0: reduce_send s[0], ch[1].output[0], ch[2].t[0] <- input[0], u[0]
)");
}

TEST_CASE("fuse: put, signal and flush on a port") {
  REQUIRE(fused("put net[1].t[0] <- s[0] ; signal net[1]") == R"(
0: put_with_signal net[1].t[0] <- s[0]
)");
  REQUIRE(fused("put net[1].t[0] <- s[0] ; signal net[1] ; flush net[1]") == R"(
0: put_with_signal_and_flush net[1].t[0] <- s[0]
)");
  REQUIRE(fused(R"(
    put net[1].t[0] <- s[0] ; signal net[1]
    put net[2].t[0] <- s[0] ; signal net[2]
    flush net[1], net[2])") == R"(
0: put_with_signal_and_flush net[1].t[0], net[2].t[0] <- s[0], s[0]
)");
  REQUIRE(fused(R"(
    put net[1].t[0] <- s[0] ; put net[2].t[0] <- s[0]
    signal net[2] ; signal net[1]
    flush net[1] ; flush net[2])") == R"(
0: put_with_signal_and_flush net[1].t[0], net[2].t[0] <- s[0], s[0]
)");
}

TEST_CASE("fuse: a signal goes with no put of several through its port") {
  REQUIRE(keeps("put net[1].t[0], net[1].t[1] <- s[0], s[1] ; signal net[1], net[1]"));
}

TEST_CASE("fuse: a put moves down to its signal, which speaks of more than the put") {
  REQUIRE(fused(R"(
    put net[1].t[0] <- s[0]
    copy output[1] <- input[1]
    signal net[1])") == R"(
0: copy output[1] <- input[1]
0: put_with_signal net[1].t[0] <- s[0]
)");
  REQUIRE(keeps(R"(
    put net[1].t[0] <- s[0]
    get s[0] <- ch[1].t[1]
    signal net[1])"));
}

TEST_CASE("fuse: not put and signal") {
  REQUIRE(keeps("put ch[1].t[0] <- s[0] ; signal ch[1]"));
  REQUIRE(keeps("put net[1].t[0] <- s[0] ; signal net[2]"));
  REQUIRE(keeps("put net[1].t[0] <- s[0] ; signal net[1] relaxed"));
  REQUIRE(keeps("put net[1].t[0] <- s[0] ; signal net[1], net[2]"));
  REQUIRE(keeps("put net[1].t[0], net[2].t[0] <- s[0], s[0] ; signal net[1]"));
  REQUIRE(keeps("put net[1].t[0] <- s[0] ; wait net[1] ; signal net[1]"));
  REQUIRE(keeps("put net[1].t[0] <- s[0] ; flush net[1] ; signal net[1]"));
  // The first of the two puts is not what is signalled last.
  REQUIRE(fused("put net[1].t[0] <- s[0] ; put net[1].t[1] <- s[1] ; signal net[1]") == R"(
0: put net[1].t[0] <- s[0]
0: put_with_signal net[1].t[1] <- s[1]
)");
}

TEST_CASE("fuse: not signal and flush") {
  REQUIRE(keeps("put_with_signal net[1].t[0] <- s[0] ; flush net[2]"));
  REQUIRE(keeps("put_with_signal net[1].t[0] <- s[0] ; flush net[1], net[2]"));
  REQUIRE(keeps("put_with_signal net[1].t[0] <- s[0] ; signal net[1] ; flush net[1]"));
  REQUIRE(keeps("put_with_signal net[1].t[0] <- s[0] ; copy output[1] <- input[1] ; flush net[1]"));
  REQUIRE(keeps(R"(
    put_with_signal net[1].t[0] <- s[0]
    put net[1].t[1] <- s[1]
    flush net[1])"));
}

// The peer takes the index of the source for that of the destination, and drops the local chunk.
TEST_CASE("fuse: a sum over a switch that is stored to all") {
  REQUIRE(fused("switch_reduce s[0] <- sw.t[2] ; switch_broadcast sw.u[5] <- s[0]") == R"(
0: switch_reduce_broadcast sw.u[5] <- sw.t[2]
)");
  REQUIRE(
      fused("switch_reduce output[0] <- sw.t[2] ; switch_broadcast sw.output[0] <- output[0]") ==
      R"(
0: switch_reduce_broadcast sw.output[0] <- sw.t[2]
)");
  REQUIRE(fused(R"(
    switch_reduce output[0] <- sw.input[0]
    switch_broadcast sw.output[0] <- output[0])") == R"(
0: switch_reduce_broadcast sw.output[0] <- sw.input[0]
)");
}

TEST_CASE("fuse: not if the local sum is wanted") {
  REQUIRE(keeps(R"(
    switch_reduce s[0] <- sw.t[2]
    switch_broadcast sw.u[5] <- s[0]
    put ch[1].u[1] <- s[0])"));
  REQUIRE(keeps("switch_reduce output[0] <- sw.t[2] ; switch_broadcast sw.u[5] <- output[0]"));
  const World even{.contract = "allgather(ranks: 4)"};
  REQUIRE(even.keeps(R"(
    switch_reduce output[0] <- sw.t[2]
    switch_broadcast sw.output[1] <- output[0])"));
}

TEST_CASE("fuse: not sums over another switch, of another size, of other chunks") {
  REQUIRE(keeps("switch_reduce s[0] <- sw.t[2] ; switch_broadcast tw.u[5] <- s[0]"));
  REQUIRE(keeps("switch_reduce s[0] <- sw.input[0] ; switch_broadcast sw.output[1] <- s[0]"));
  REQUIRE(keeps("switch_reduce s[0] <- sw.t[2] ; switch_broadcast sw.u[5] <- s[1]"));
  REQUIRE(keeps(R"(
    switch_reduce s[0..2] <- sw.t[2..4]
    switch_broadcast sw.t[3..5] <- s[0..2])"));
}

TEST_CASE("fuse: a chain of two hundred thousand moves is one") {
  // It would take minutes if all moves before were looked at for each.
  REQUIRE(testing::after({"fuse"}, R"(program t
let N = 200000
collective allreduce(ranks: 1)
rank 0 {
  buffer z[N]
  tb 0 {
    copy z[0] <- input
    for i in 1..N { copy z[i] <- z[i - 1] }
    copy output <- z[N - 1]
  }
}
)") == "\n0: copy output[0] <- input[0]\n");
}

}  // namespace mscclc
