// Inside a block; between blocks: sync_blocks_test.cc.
#include <catch2/catch.hpp>

#include "passes/test_text.h"

namespace mscclc {
namespace {

using testing::after;
using testing::two_ranks;

std::string synced(std::string_view body, std::string_view more = "") {
  return after({"assign", "groups", "sync"}, two_ranks(body, more));
}

}  // namespace

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
  // Out of place the second op reads what nobody has written; in place nobody writes at all.
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

TEST_CASE("sync: auto_sync: false adds nothing") {
  REQUIRE(synced("tb 0 { copy s[0] <- input[0] ; put up.s[1] <- s[0] }",
                 "launch auto_sync: false") == R"(
0: copy s[0] <- input[0]
0: put up.s[1] <- s[0]
)");
}

}  // namespace mscclc
