// fit: what is cut, where, and what is not; nothing larger than the limits comes out of the passes.
#include "passes/fuse/fuse_test_text.h"

namespace mscclc {
namespace {

using testing::World;

/// Rank 0 of a World after the passes, under limits.
std::string compiled(const World& world, const std::string& body,
                     std::initializer_list<const char*> passes) {
  Program program = testing::parse(world.text(body));
  PassOptions options;
  options.only.assign(passes.begin(), passes.end());
  options.limits = world.limits;
  options.verify_each = true;
  Diagnostics diagnostics;
  const bool ok = run_passes(program, options, diagnostics);
  INFO(render_text(diagnostics, {}));
  REQUIRE(ok);
  return testing::listing(program, 0);
}

const World kSmall{.limits = {.operands = 3, .channels = 2, .semaphores = 1, .unpacks = 1}};

std::string fitted(const std::string& body, const World& world = kSmall) {
  return compiled(world, body, {"assign", "fit"});
}

bool stays(const std::string& body, World world = kSmall) {
  world.limits = {};
  return fitted(body) == fitted(body, world);
}

}  // namespace

TEST_CASE("fit: lists are cut into runs") {
  REQUIRE(fitted(R"(
    put ch[1].t[0], ch[2].t[0], ch[3].t[0], ch[1].t[1] <- s[0], s[0], s[0], s[1]
    put net[1].t[0], net[2].t[0], net[3].t[0] <- s[0], s[1], s[2]
    get t[0], t[1], t[2] <- ch[1].s[0], ch[2].s[0], ch[3].s[0]
    read_put_packets ch[1].q[0], ch[2].q[0], ch[3].q[0], ch[1].q[1] <- k[0]
    unpack_packets t[3], t[4] <- q[3], q[4]
    put_with_signal net[1].t[0], net[2].t[0], net[3].t[0] <- s[0], s[1], s[2]
    flush net[1], net[2], net[3])") == R"(
0: put ch[1].t[0], ch[2].t[0], ch[3].t[0] <- s[0], s[0], s[0]
0: put ch[1].t[1] <- s[1]
0: put net[1].t[0], net[2].t[0] <- s[0], s[1]
0: put net[3].t[0] <- s[2]
0: get t[0], t[1] <- ch[1].s[0], ch[2].s[0]
0: get t[2] <- ch[3].s[0]
0: read_put_packets ch[1].q[0], ch[2].q[0], ch[3].q[0] <- k[0]
0: read_put_packets ch[1].q[1] <- k[0]
0: unpack_packets t[3] <- q[3]
0: unpack_packets t[4] <- q[4]
0: put_with_signal net[1].t[0], net[2].t[0] <- s[0], s[1]
0: put_with_signal net[3].t[0] <- s[2]
0: flush net[1], net[2]
0: flush net[3]
)");
}

TEST_CASE("fit: signals, waits and semaphores are cut, and stay relaxed") {
  REQUIRE(fitted(R"(tb 0 {
    signal ch[1], ch[2], ch[3] relaxed
    wait ch[1], ch[2], ch[3]
    release a, b
    acquire a, b
  })") == R"(
0: signal ch[1], ch[2] relaxed
0: signal ch[3] relaxed
0: wait ch[1], ch[2]
0: wait ch[3]
0: release a
0: release b
0: acquire a
0: acquire b
)");
}

TEST_CASE("fit: sums keep their order, the last part is sent") {
  REQUIRE(fitted(R"(
    reduce_send output[0], ch[1].output[0], ch[2].output[0], ch[3].output[0], ch[1].t[0] <- input[0], s[0], s[1], s[2], s[3], s[4] op: max)") ==
          R"(
0: reduce output[0] <- input[0], s[0], s[1] op: max
0: reduce output[0] <- output[0], s[2], s[3] op: max
0: reduce_send output[0], ch[1].output[0], ch[2].output[0] <- output[0], s[4] op: max
0: put ch[3].output[0], ch[1].t[0] <- output[0], output[0]
)");
  REQUIRE(fitted(R"(
    read_reduce_send t[0], ch[1].t[0] <- t[0], ch[1].s[0], ch[2].s[0], ch[3].s[0]
    reduce_packets output[0] <- q[0], input[0], q[1], q[2]
    reduce_copy_send_packets output[1], k[1], ch[1].q[4] <- input[1], q[4], q[5], q[6])") == R"(
0: read_reduce t[0] <- t[0], ch[1].s[0], ch[2].s[0]
0: read_reduce_send t[0], ch[1].t[0] <- t[0], ch[3].s[0]
0: reduce_packets output[0] <- q[0], input[0], q[1]
0: reduce_packets output[0] <- output[0], q[2]
0: reduce_packets output[1] <- input[1], q[4], q[5]
0: reduce_copy_send_packets output[1], k[1], ch[1].q[4] <- output[1], q[6]
)");
}

TEST_CASE("fit: what a sum of packets cannot send itself is put as the far ends hold it") {
  REQUIRE(fitted(R"(
    reduce_packets_put output[0], ch[1].t[0], ch[2].t[0], ch[3].t[0] <- input[0], q[0]
    reduce_send_packets output[1], ch[1].q[4], ch[2].q[4], ch[3].q[4] <- input[1], q[5])") == R"(
0: reduce_packets_put output[0], ch[1].t[0], ch[2].t[0] <- input[0], q[0]
0: put ch[3].t[0] <- output[0]
0: reduce_send_packets output[1], ch[1].q[4], ch[2].q[4] <- input[1], q[5]
0: put_packets ch[3].q[4] <- output[1]
)");
  // A sum that is also kept as packets has no room for a far end among two destinations.
  REQUIRE(
      fitted("reduce_copy_send_packets output[1], k[1], ch[1].q[4], ch[2].q[4] <- input[1], q[4]",
             {.limits = {.operands = 2}}) == R"(
0: reduce_copy_packets output[1], k[1] <- input[1], q[4]
0: put_packets ch[1].q[4], ch[2].q[4] <- output[1], output[1]
)");
}

TEST_CASE("fit: what cannot be cut stays") {
  // Later sources are overwritten: by name, or where the caller's buffers coincide.
  REQUIRE(stays("reduce t[0] <- s[0], s[1], s[2], t[0]"));
  REQUIRE(stays("reduce output[0] <- s[0], s[1], s[2], input[0]"));
  REQUIRE(stays("reduce output[0] <- s[0], s[1], s[2], s[3] tree"));
  REQUIRE_FALSE(stays("reduce output[0] <- s[0], s[1], s[2], s[3]"));
  World apart = kSmall;
  apart.contract = "allreduce(ranks: 4, chunks: 8, inplace: false)";
  REQUIRE(fitted("reduce output[0] <- s[0], s[1], s[2], input[0]", apart) == R"(
0: reduce output[0] <- s[0], s[1], s[2]
0: reduce output[0] <- output[0], input[0]
)");
  // A sum in scratch that is as long as a chunk of the caller's.
  REQUIRE(stays("reduce_packets t[0] <- input[0], q[0], q[1], q[2]"));
  REQUIRE_FALSE(stays("reduce_packets t[0] <- s[0], q[0], q[1], q[2]"));
  REQUIRE(stays("reduce_packets output[0] <- q[0], q[1], q[2], input[0]"));
  // Sentinel slots are filled and read but once.
  REQUIRE(stays("read_put_packets ch[1].z[0], ch[2].z[0], ch[3].z[0], ch[1].z[1] <- z[4]"));
  REQUIRE(stays(R"(
    reduce_send_packets t[0], ch[1].z[0], ch[2].z[0], ch[3].z[0], ch[1].z[1] <- s[0], z[4])"));
  REQUIRE(stays(R"(
    tb 0 { barrier 0..4 } tb 1 { barrier 0..4 } tb 2 { barrier 0..4 } tb 3 { barrier 0..4 })"));
}

TEST_CASE("fit: sources of one put come from buffers of one kind") {
  const World peer{.limits = {.one_source_kind = true}};
  const std::string body =
      "put ch[1].t[0], ch[2].t[0], ch[3].t[0] <- input[0], input[1], s[0]\n"
      "put net[1].t[0], net[2].t[0] <- input[0], s[0]";
  REQUIRE(fitted(body, peer) == R"(
0: put ch[1].t[0], ch[2].t[0] <- input[0], input[1]
0: put ch[3].t[0] <- s[0]
0: put net[1].t[0], net[2].t[0] <- input[0], s[0]
)");
  REQUIRE(compiled(peer, body, {"assign", "fit", "fuse"}) == fitted(body, peer));
  REQUIRE(peer.keeps("put ch[1].t[0] <- input[0] ; put ch[2].t[0] <- s[0]"));
  // Also where a copy would be folded into it.
  REQUIRE(peer.fused(R"(
    copy s[0] <- output[0]
    put ch[1].t[0] <- s[0]
    put ch[2].t[0] <- output[1])") == R"(
0: put ch[1].t[0], ch[2].t[0] <- output[0], output[1]
)");
}

TEST_CASE("fit: without limits nothing is cut, and fuse does not exceed them") {
  const std::string body = R"(
    for p in [1, 2, 3] { put ch[p].t[0] <- s[0] }
    put ch[1].t[1] <- s[1]
    put ch[2].t[1] <- s[1])";
  REQUIRE(compiled(World{}, body, {"assign", "fit", "fuse"}) == R"(
0: put ch[1].t[0], ch[2].t[0], ch[3].t[0], ch[1].t[1], ch[2].t[1] <- s[0], s[0], s[0], s[1], s[1]
)");
  REQUIRE(compiled(kSmall, body, {"assign", "fit", "fuse"}) == R"(
0: put ch[1].t[0], ch[2].t[0], ch[3].t[0] <- s[0], s[0], s[0]
0: put ch[1].t[1], ch[2].t[1] <- s[1], s[1]
)");
}

TEST_CASE("fit: sync makes no release or acquire that is too large") {
  REQUIRE(compiled(kSmall, R"(
    tb 1 { copy t[1] <- input[1] }
    tb 2 { copy t[2] <- input[2] }
    tb 0 { put ch[1].t[1..3] <- t[1..3] })",
                   {"assign", "sync"}) == R"(
1: copy t[1] <- input[1]
1: sync
1: release order[0]
2: copy t[2] <- input[2]
2: sync
2: release order[1]
0: acquire order[0]
0: acquire order[1]
0: sync
0: put ch[1].t[1..3] <- t[1..3]
)");
}

TEST_CASE("fit: says how many ops it has cut") {
  Program program = testing::parse(kSmall.text("tb 0 { signal ch[1], ch[2], ch[3] }"));
  std::vector<PassRecord> records;
  PassOptions options;
  options.only = {"fit"};
  options.limits = kSmall.limits;
  options.records = &records;
  Diagnostics diagnostics;
  REQUIRE(run_passes(program, options, diagnostics));
  REQUIRE(records.size() == 1);
  // Rank 0 cuts one op.
  REQUIRE(records[0].counts == decltype(records[0].counts){{"ops cut", 1}});
  REQUIRE(records[0].ops_after == records[0].ops_before + 1);
}

}  // namespace mscclc
