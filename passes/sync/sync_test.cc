// Inside a block; between blocks: sync_blocks_test.cc.
#include <catch2/catch.hpp>

#include "passes/testing/test_text.h"

namespace mscclc {
namespace {

using testing::after;
using testing::two_ranks;

std::string synced(std::string_view body, std::string_view more = "") {
  return after({"assign", "groups", "sync"}, two_ranks(body, more));
}

}  // namespace

// The threads that have taken packets know what they publish; for all threads to know, they must
// meet.
TEST_CASE("sync: the author's sync after packets stays before what the block moves") {
  const auto synced_packets = [](std::string_view body) {
    return after({"assign", "sync"},
                 two_ranks(std::string("buffer q[2] packets: LL16\n") + std::string(body)));
  };
  REQUIRE(synced_packets(R"(
    tb 0 {
      unpack_packets s[0] <- q[0]
      sync
      put up.s[2] <- input[1]
    })") == R"(
0: unpack_packets s[0] <- q[0]
0: sync
0: put up.s[2] <- input[1]
)");
  // One is enough, and none is added.
  REQUIRE(synced_packets(R"(
    tb 0 {
      unpack_packets s[0] <- q[0]
      sync
      sync
      put up.s[2] <- input[1]
      sync
      put up.s[3] <- input[2]
      unpack_packets s[1] <- q[1]
      put up.s[1] <- input[1]
      sync
    })") == R"(
0: unpack_packets s[0] <- q[0]
0: sync
0: put up.s[2] <- input[1]
0: put up.s[3] <- input[2]
0: unpack_packets s[1] <- q[1]
0: put up.s[1] <- input[1]
)");
}

TEST_CASE("sync: conflicts inside a block") {
  // Read after write, write after read, write after write; ops on other chunks do not care.
  REQUIRE(synced(R"(tb 0 {
    copy s[0] <- input[0]
    copy s[1] <- s[0]
    copy s[2] <- input[2]
    copy s[0] <- input[3]
    copy s[0] <- input[1]
  })") == R"(
0: copy s[0] <- input[0]
0: sync
0: copy s[1] <- s[0]
0: copy s[2] <- input[2]
0: sync
0: copy s[0] <- input[3]
0: sync
0: copy s[0] <- input[1]
)");
}

TEST_CASE("sync: reads do not conflict, one sync serves several needs") {
  REQUIRE(synced(R"(tb 0 {
    copy s[0] <- input[0] ; copy s[1] <- input[1]
    put up.s[0] <- s[0] ; put up.s[1] <- s[0]
    put up.s[2] <- s[1]
  })") == R"(
0: copy s[0] <- input[0]
0: copy s[1] <- input[1]
0: sync
0: put up.s[0] <- s[0]
0: put up.s[1] <- s[0]
0: put up.s[2] <- s[1]
)");
}

TEST_CASE("sync: references to several chunks conflict where they overlap") {
  REQUIRE(synced(R"(tb 0 {
    copy s[0..2] <- input[0..2]
    copy s[2..4] <- input[2..4]
    put up.s[1..3] <- s[1..3]
  })") == R"(
0: copy s[0..2] <- input[0..2]
0: copy s[2..4] <- input[2..4]
0: sync
0: put up.s[1..3] <- s[1..3]
)");
}

TEST_CASE("sync: input and output may be the same memory") {
  const std::string body = "tb 0 { copy s[0] <- input[0] ; copy output[0] <- s[1] }";
  REQUIRE(synced(body) == R"(
0: copy s[0] <- input[0]
0: sync
0: copy output[0] <- s[1]
)");
  Program apart =
      testing::parse(two_ranks(body, "", "allreduce(ranks: 2, chunks: 4, inplace: false)"));
  testing::run(apart, {"sync"});
  REQUIRE(testing::listing(apart, 0) == R"(
0: copy s[0] <- input[0]
0: copy output[0] <- s[1]
)");
}

TEST_CASE("sync: in place, a copy onto itself does nothing") {
  // Out of place the second op reads what no op has written; in place no op writes at all.
  REQUIRE(synced("tb 0 { copy output[0] <- input[0] ; put up.s[0] <- input[0] }") == R"(
0: copy output[0] <- input[0]
0: put up.s[0] <- input[0]
)");
  REQUIRE(synced("tb 0 { copy output[0] <- input[0] ; put up.s[0] <- output[0] }") == R"(
0: copy output[0] <- input[0]
0: sync
0: put up.s[0] <- output[0]
)");
}

TEST_CASE("sync: where in place begins depends on the contract") {
  // The input of rank r is row r of the output.
  const std::string text = two_ranks(R"(tb 0 {
    copy s[0] <- input[0]
    copy output[1 - r, 0] <- s[1]
    copy output[r, 0] <- s[1]
  })",
                                     "", "allgather(ranks: 2, chunks: 2)");
  REQUIRE(after({"sync"}, text) == R"(
0: copy s[0] <- input[0]
0: copy output[2] <- s[1]
0: sync
0: copy output[0] <- s[1]
)");
}

TEST_CASE("sync: signals publish what the block did") {
  REQUIRE(synced(R"(
    tb 0 { signal up relaxed ; put up.s[0] <- input[0] ; put up.s[1] <- input[1] ; signal up }
    tb 1 { wait up relaxed ; wait up })") == R"(
0: signal up relaxed
0: put up.s[0] <- input[0]
0: put up.s[1] <- input[1]
0: sync
0: signal up
1: wait up relaxed
1: wait up
)");
}

TEST_CASE("sync: what follows a wait comes after it") {
  REQUIRE(synced(R"(tb 0 {
    signal up relaxed ; wait up relaxed
    put up.s[0] <- input[0]
    signal up ; wait up
    signal up ; wait up
  })") == R"(
0: signal up relaxed
0: wait up relaxed
0: sync
0: put up.s[0] <- input[0]
0: sync
0: signal up
0: wait up
0: sync
0: signal up
0: wait up
)");
}

TEST_CASE("sync: a flush waits for puts, and what follows waits for it") {
  REQUIRE(synced(R"(
    channel net = port(1 - r)
    tb 0 { put net.s[0] <- s[1] ; flush net ; copy s[1] <- input[0] })") == R"(
0: put net.s[0] <- s[1]
0: sync
0: flush net
0: sync
0: copy s[1] <- input[0]
)");
}

TEST_CASE("sync: a put with signal publishes, too") {
  REQUIRE(synced(R"(
    channel net = port(1 - r)
    tb 0 { copy s[0] <- input[0] ; put_with_signal net.s[2] <- s[1] }
    tb 1 { wait net })") == R"(
0: copy s[0] <- input[0]
0: sync
0: put_with_signal net.s[2] <- s[1]
1: wait net
)");
}

TEST_CASE("sync: packets speak for themselves, but not those that a port sends as they lie") {
  REQUIRE(synced(R"(
    buffer p[4] packets: LL16
    channel net = port(1 - r)
    tb 0 {
      copy_packets p[0] <- input[0]
      put_packets net.p[1] <- p[0]
      unpack_packets output[1] <- p[1]
    })") == R"(
0: copy_packets p[0] <- input[0]
0: sync
0: put_packets net.p[1] <- p[0]
0: unpack_packets output[1] <- p[1]
)");
}

namespace {

/// The first error of the passes up to sync: its message, then its notes, a line each.
std::string first_complaint(Program& p) {
  PassOptions options;
  options.only = {"assign", "groups", "sync"};
  Diagnostics diagnostics;
  REQUIRE_FALSE(run_passes(p, options, diagnostics));
  std::string text = "\n" + diagnostics.all().front().message + "\n";
  for (const Note& note : diagnostics.all().front().notes) text += note.text + "\n";
  return text;
}

/// What `launch auto_sync: false` says of a body.
std::string complaint(std::string_view body) {
  Program p = testing::parse(two_ranks(body, "launch auto_sync: false"));
  return first_complaint(p);
}

std::string packets(std::string_view body, std::string_view format = "LL16") {
  return after({"sync"}, two_ranks("buffer q[4] packets: " + std::string(format) +
                                   "\nbuffer w[4] packets: LL8\nbuffer l[4] packets: LL128\n"
                                   "channel net = port(1 - r)\ntb 0 {\n" +
                                   std::string(body) + "\n}"));
}

}  // namespace

TEST_CASE("sync: auto_sync: false changes nothing, and reports what is missing") {
  REQUIRE(complaint("tb 0 { copy s[0] <- input[0] ; put up.s[1] <- s[0] }") == R"(
a 'sync' is missing before this op
when r = 0
in 'put up.s[1] <- s[0]' (rank 0, tb 0)
'copy s[0] <- input[0]' (rank 0, tb 0): both touch the same bytes, in different threads of the block
'launch auto_sync: false' leaves the order of ops to the program
)");
  REQUIRE(complaint("tb 0 { signal up ; wait up ; put up.s[1] <- s[0] }") == R"(
a 'sync' is missing before this op
when r = 0
in 'put up.s[1] <- s[0]' (rank 0, tb 0)
'wait up' (rank 0, tb 0): what follows must come after this, in all threads of the block
'launch auto_sync: false' leaves the order of ops to the program
)");
  REQUIRE(complaint("tb 0 { put up.s[1] <- s[0] ; signal up ; wait up }") == R"(
a 'sync' is missing before this op
when r = 0
in 'signal up' (rank 0, tb 0)
'put up.s[1] <- s[0]' (rank 0, tb 0): what all threads of the block did must be published here
'launch auto_sync: false' leaves the order of ops to the program
)");
  const std::string right = "tb 0 { copy s[0] <- input[0] ; sync ; sync ; put up.s[1] <- s[0] }";
  REQUIRE(synced(right, "launch auto_sync: false") == R"(
0: copy s[0] <- input[0]
0: sync
0: sync
0: put up.s[1] <- s[0]
)");
}

TEST_CASE("sync: auto_sync: false, rounds and flushes") {
  REQUIRE(complaint(R"(pipeline unit: 1KiB, chunks: 2 {
    tb 0 { copy s[0..2] <- input[0..2] ; sync ; copy output[0..2] <- s[1..3] }
  })") == R"(
a 'sync' is missing before this op
when r = 0
in 'copy s[0..2] <- input[0..2]' (rank 0, tb 0)
'copy output[0..2] <- s[1..3]' (rank 0, tb 0): rounds of the pipeline touch the same bytes
'launch auto_sync: false' leaves the order of ops to the program
)");
  REQUIRE(complaint("channel net = port(1 - r) ; tb 0 { put net.s[1] <- s[0] ; flush net }") == R"(
a 'sync' is missing before this op
when r = 0
in 'flush net' (rank 0, tb 0)
'put net.s[1] <- s[0]' (rank 0, tb 0): this must be waited for, whichever thread posted it
'launch auto_sync: false' leaves the order of ops to the program
)");
}

TEST_CASE("sync: packet ops of one format deal bytes out to threads alike") {
  // In place the row is overwritten where it was read, each byte by the thread that has read it.
  REQUIRE(packets(R"(
    put_packets up.q[0..2] <- input[0..2]
    unpack_packets output[0..2] <- q[2..4])") == R"(
0: put_packets up.q[0..2] <- input[0..2]
0: unpack_packets output[0..2] <- q[2..4]
)");
  REQUIRE(packets(R"(
    put_packets up.q[0] <- input[0]
    reduce_packets output[0] <- input[0], q[1]
    put_packets up.q[2] <- output[0])") == R"(
0: put_packets up.q[0] <- input[0]
0: reduce_packets output[0] <- input[0], q[1]
0: put_packets up.q[2] <- output[0]
)");
  REQUIRE(packets("put_packets up.l[0] <- s[0] ; unpack_packets s[0] <- l[1]") == R"(
0: put_packets up.l[0] <- s[0]
0: unpack_packets s[0] <- l[1]
)");
}

TEST_CASE("sync: packet ops that deal bytes out otherwise") {
  const auto needs_sync = [](std::string_view body) {
    return packets(body).find(": sync\n") != std::string::npos;
  };
  CHECK_FALSE(needs_sync("put_packets up.q[0] <- s[0] ; unpack_packets s[0] <- q[1]"));
  // Other formats; plain ops, whose threads the peer deals out by address.
  CHECK(needs_sync("put_packets up.q[0] <- s[0] ; unpack_packets s[0] <- l[1]"));
  CHECK(needs_sync("put_packets up.q[0] <- s[0] ; unpack_packets s[0] <- w[1]"));
  CHECK(needs_sync("put_packets up.q[0] <- s[0] ; copy s[0] <- s[1]"));
  CHECK(needs_sync("copy s[0] <- input[0] ; put_packets up.q[0] <- s[0]"));
  CHECK(needs_sync("copy s[0] <- input[0] ; copy output[0] <- s[0]"));
  // Other references.
  CHECK(needs_sync("put_packets up.q[0..2] <- s[0..2] ; unpack_packets s[1..3] <- q[1..3]"));
  CHECK(needs_sync("put_packets up.q[0..2] <- s[0..2] ; unpack_packets s[0] <- q[1]"));
  // Runs that a chunk of the caller's breaks, in one of the ops.
  CHECK_FALSE(needs_sync("put_packets up.q[0..2] <- s[0..2] ; unpack_packets s[0..2] <- q[1..3]"));
  CHECK(needs_sync(R"(reduce_packets s[0..2] <- input[0..2], q[0..2]
                      put_packets up.q[0..2] <- s[0..2])"));
  CHECK_FALSE(needs_sync("reduce_packets s[0] <- input[0], q[0] ; put_packets up.q[0] <- s[0]"));
  CHECK(needs_sync(R"(reduce_packets output[0..2] <- input[0..2], q[0..2]
                      put_packets up.q[2..4] <- output[0..2])"));
  // Parts.
  CHECK(needs_sync(R"(put_packets up.q[0] <- s[0] part: [0, 2]
                      unpack_packets s[0] <- q[1] part: [1, 3])"));
  CHECK_FALSE(needs_sync(R"(put_packets up.q[0] <- s[0] part: [0, 2]
                            unpack_packets s[0] <- q[1] part: [0, 2])"));
  // Packets that a port reads as they lie.
  CHECK(needs_sync("copy_packets q[0] <- s[0] ; put_packets net.q[1] <- q[0]"));
}

TEST_CASE("sync: the author's syncs stay where they order something") {
  const auto stays = [](std::string_view body) {
    const std::string text = synced(body);
    return text.find(": sync\n") != std::string::npos;
  };
  CHECK(stays("tb 0 { copy s[0] <- input[0] ; sync ; put up.s[1] <- s[0] }"));
  CHECK(stays("tb 0 { put up.s[0] <- input[0] ; sync ; signal up ; wait up }"));
  // Though none would be added: relaxed signals after data or signals, one wait after another.
  CHECK(stays("tb 0 { put up.s[0] <- input[0] ; sync ; signal up relaxed ; wait up relaxed }"));
  CHECK(stays("tb 0 { signal up ; sync ; signal up relaxed ; wait up ; wait up relaxed }"));
  CHECK(stays("tb 0 { signal up, up ; wait up ; sync ; wait up }"));
  CHECK(
      stays("semaphore a = 1 ; semaphore b = 1 ; tb 0 { acquire a ; sync ; acquire b } "
            "tb 1 { release a, b }"));
  // What orders nothing goes.
  CHECK_FALSE(stays("tb 0 { sync ; copy s[0] <- input[0] ; sync }"));
  CHECK_FALSE(stays("tb 0 { copy s[0] <- input[0] ; sync ; copy s[1] <- input[1] }"));
  CHECK_FALSE(stays("tb 0 { signal up ; sync ; wait up }"));
  CHECK_FALSE(stays("tb 0 { signal up relaxed ; sync ; signal up ; wait up ; wait up relaxed }"));
  CHECK_FALSE(stays("tb 0 { copy s[0] <- input[0] ; barrier 0..1 ; copy s[1] <- input[1] }"));
}

TEST_CASE("sync: of several syncs of the author the last that serves stays") {
  REQUIRE(synced(R"(tb 0 {
    copy s[0] <- input[0]
    sync
    copy s[1] <- input[1]
    sync
    sync
    put up.s[0] <- s[0]
    sync
    put up.s[1] <- s[1]
    signal up
    wait up
  })") == R"(
0: copy s[0] <- input[0]
0: copy s[1] <- input[1]
0: sync
0: put up.s[0] <- s[0]
0: put up.s[1] <- s[1]
0: sync
0: signal up
0: wait up
)");
}

TEST_CASE("sync: a wait in front of a pipeline costs no sync in its rounds") {
  const std::string want = R"(
0: signal up
0: wait up
0: sync
0~ put up.s[0] <- input[0]
)";
  REQUIRE(synced(R"(tb 0 { signal up ; wait up }
    pipeline unit: 1KiB { tb 0 { put up.s[0] <- input[0] } })") == want);
  REQUIRE(synced(R"(tb 0 { signal up ; wait up ; sync }
    pipeline unit: 1KiB { tb 0 { put up.s[0] <- input[0] } })") == want);
  REQUIRE(synced(R"(tb 0 { signal up ; wait up }
    pipeline unit: 1KiB { tb 0 { sync ; put up.s[0] <- input[0] } })") == want);
  // In a group the barrier in front is enough: groups_test has it.
  const std::string group = two_ranks(R"(group 0..2 { signal up ; wait up }
    pipeline unit: 1KiB { group 0..2 { put up.s[0] <- input[0] } })");
  REQUIRE(after({"groups", "sync"}, group) == after({"groups"}, group));
}

TEST_CASE("sync: syncs at the ends of a body") {
  // One of the two syncs between the wait and the next round's data will do.
  REQUIRE(synced(R"(pipeline unit: 1KiB { tb 0 {
    sync
    copy s[0] <- input[0]
    sync
    signal up
    wait up
    sync
  } })") == R"(
0~ sync
0~ copy s[0] <- input[0]
0~ sync
0~ signal up
0~ wait up
)");
  // A sync that only the first round needs, and one that only what follows needs.
  REQUIRE(synced(R"(
    tb 0 { copy s[0] <- input[0] }
    pipeline unit: 1KiB { tb 0 { sync ; put up.s[0] <- s[0] ; sync } }
    tb 0 { signal up ; wait up })") == R"(
0: copy s[0] <- input[0]
0: sync
0~ put up.s[0] <- s[0]
0~ sync
0: signal up
0: wait up
)");
}

}  // namespace mscclc
