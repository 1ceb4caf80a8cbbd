// Between blocks; inside a block: sync_test.cc.
#include <catch2/catch.hpp>

#include "passes/testing/test_text.h"

namespace mscclc {
namespace {

using testing::after;
using testing::fail;
using testing::two_ranks;

std::string synced_blocks(std::string_view body, std::string_view more = "") {
  return after({"assign", "groups", "sync"}, two_ranks(body, more));
}

}  // namespace

TEST_CASE("sync: blocks are ordered by a semaphore") {
  REQUIRE(synced_blocks(R"(
    tb 0 { copy s[0] <- input[0] ; copy s[1] <- input[1] }
    tb 1 { put up.s[2] <- s[0] ; put up.s[3] <- s[1] }
    tb 2 { put up.output[0] <- s[1] })") == R"(
0: copy s[0] <- input[0]
0: sync
0: release order[0]
0: copy s[1] <- input[1]
0: sync
0: release order[0], order[1]
1: acquire order[0]
1: sync
1: put up.s[2] <- s[0]
1: acquire order[0]
1: sync
1: put up.s[3] <- s[1]
2: acquire order[1]
2: sync
2: put up.output[0] <- s[1]
)");
}

TEST_CASE("sync: one acquire for all that an op must follow, none for what follows from others") {
  REQUIRE(synced_blocks(R"(
    tb 0 { copy s[0] <- input[0] }
    tb 1 { copy s[1] <- input[1] }
    tb 2 { reduce s[2] <- s[0], s[1] }
    tb 3 { reduce s[3] <- s[2], s[0] })") == R"(
0: copy s[0] <- input[0]
0: sync
0: release order[0]
1: copy s[1] <- input[1]
1: sync
1: release order[1]
2: acquire order[0], order[1]
2: sync
2: reduce s[2] <- s[0], s[1]
2: sync
2: release order[2]
3: acquire order[2]
3: sync
3: reduce s[3] <- s[2], s[0]
)");
}

TEST_CASE("sync: bytes of other ranks count, too") {
  REQUIRE(synced_blocks("tb 0 { put up.s[0] <- input[0] }  tb 1 { put up.s[0] <- input[1] }") == R"(
0: put up.s[0] <- input[0]
0: sync
0: release order[0]
1: acquire order[0]
1: sync
1: put up.s[0] <- input[1]
)");
}

TEST_CASE("sync: at a switch all members' chunks are touched") {
  REQUIRE(synced_blocks(R"(
    channel sw = switch(0..2)
    tb 0 { put up.s[0] <- input[0] }
    tb 1 { switch_broadcast sw.s[0] <- input[0] }
    tb 1 { put up.output[0] <- s[0] })") == R"(
0: put up.s[0] <- input[0]
0: sync
0: release order[0]
1: acquire order[0]
1: sync
1: switch_broadcast sw.s[0] <- input[0]
1: sync
1: put up.output[0] <- s[0]
)");
}

TEST_CASE("sync: what the author has ordered is left alone") {
  REQUIRE(synced_blocks(R"(
    semaphore done
    tb 0 { copy s[0] <- input[0] ; release done }
    tb 1 { acquire done ; put up.s[1] <- s[0] }
    tb 2 { copy s[2] <- input[2] ; barrier 2..4 }
    tb 3 { barrier 2..4 ; put up.s[3] <- s[2] })") == R"(
0: copy s[0] <- input[0]
0: sync
0: release done
1: acquire done
1: sync
1: put up.s[1] <- s[0]
2: copy s[2] <- input[2]
2: barrier 2..4
3: barrier 2..4
3: put up.s[3] <- s[2]
)");
}

TEST_CASE("sync: the author may order against the written order") {
  REQUIRE(synced_blocks(R"(
    semaphore filled
    tb 0 { acquire filled ; put up.s[1] <- s[0] }
    tb 1 { copy s[0] <- input[0] ; release filled })") == R"(
0: acquire filled
0: sync
0: put up.s[1] <- s[0]
1: copy s[0] <- input[0]
1: sync
1: release filled
)");
}

TEST_CASE("sync: an initial value orders nothing") {
  REQUIRE(synced_blocks(R"(
    semaphore credit = 1
    tb 0 { copy s[0] <- input[0] ; release credit }
    tb 1 { acquire credit ; put up.s[1] <- s[0] })") == R"(
0: copy s[0] <- input[0]
0: sync
0: release order[0]
0: release credit
1: acquire credit
1: acquire order[0]
1: sync
1: put up.s[1] <- s[0]
)");
}

TEST_CASE("sync: a release that any of several blocks may have made orders nothing") {
  REQUIRE(synced_blocks(R"(
    semaphore any
    tb 0 { copy s[0] <- input[0] ; release any }
    tb 1 { release any }
    tb 2 { acquire any ; put up.s[1] <- s[0] ; acquire any })") == R"(
0: copy s[0] <- input[0]
0: sync
0: release order[0]
0: release any
1: release any
2: acquire any
2: acquire order[0]
2: sync
2: put up.s[1] <- s[0]
2: acquire any
)");
}

TEST_CASE("sync: blocks of one pipeline are ordered round by round") {
  REQUIRE(synced_blocks(R"(pipeline unit: 1KiB {
    tb 0 { copy s[0] <- input[0] }
    tb 1 { put up.s[1] <- s[0] }
  })") == R"(
0~ copy s[0] <- input[0]
0~ sync
0~ release order[0]
1~ acquire order[0]
1~ sync
1~ put up.s[1] <- s[0]
)");
}

TEST_CASE("sync: what is outside of a pipeline waits for all of it") {
  REQUIRE(synced_blocks(R"(
    tb 0 { copy s[0] <- input[0] }
    pipeline unit: 1KiB {
      tb 1 { put up.s[1] <- s[2] ; put up.s[2] <- s[0] }
      tb 2 { copy s[3] <- input[3] }
    }
    tb 0 { copy s[0] <- input[1] ; copy s[2] <- s[3] })") == R"(
0: copy s[0] <- input[0]
0: sync
0: release order[0]
1: acquire order[0]
1: sync
1~ put up.s[1] <- s[2]
1~ put up.s[2] <- s[0]
2~ copy s[3] <- input[3]
1: sync
1: release order[1]
2: sync
2: release order[2]
0: acquire order[1]
0: sync
0: copy s[0] <- input[1]
0: acquire order[2]
0: sync
0: copy s[2] <- s[3]
)");
}

TEST_CASE("sync: of two pipelines the second waits for the first") {
  REQUIRE(synced_blocks(R"(
    pipeline unit: 1KiB { tb 0 { copy s[0] <- input[0] } }
    pipeline unit: 2KiB { tb 1 { put up.s[1] <- s[0] } })") == R"(
0~ copy s[0] <- input[0]
0: sync
0: release order[0]
1: acquire order[0]
1: sync
1~ put up.s[1] <- s[0]
)");
}

TEST_CASE("sync: the end of a body is followed by its beginning") {
  REQUIRE(synced_blocks(R"(
    tb 0 { signal up ; wait up }
    pipeline unit: 1KiB { tb 0 { put up.s[0] <- input[0] ; signal up ; wait up } })") == R"(
0: signal up
0: wait up
0~ sync
0~ put up.s[0] <- input[0]
0~ sync
0~ signal up
0~ wait up
)");
}

TEST_CASE("sync: rounds that overlap each other are separated") {
  // Round i + 1 of the first op writes what round i of the second has read, where chunks are as
  // long as a unit.
  REQUIRE(synced_blocks(R"(pipeline unit: 1KiB, chunks: 2 {
    tb 0 { copy s[0..2] <- input[0..2] }
    tb 0 { put up.s[2..4] <- s[1..3] }
  })") == R"(
0~ sync
0~ copy s[0..2] <- input[0..2]
0~ sync
0~ put up.s[2..4] <- s[1..3]
)");
  REQUIRE(synced_blocks(R"(pipeline unit: 1KiB, chunks: 2 {
    tb 0 { copy s[0..2] <- input[0..2] }
    tb 1 { put up.s[2..4] <- s[1..3] }
  })") == R"(
0~ barrier 0..2
0~ copy s[0..2] <- input[0..2]
0~ sync
0~ release order[0]
1~ barrier 0..2
1~ acquire order[0]
1~ sync
1~ put up.s[2..4] <- s[1..3]
)");
}

TEST_CASE("sync: parts of a group cut alike need no barrier") {
  REQUIRE(synced_blocks("group 0..2 { copy s[0] <- input[0] ; put up.s[1] <- s[0] }") == R"(
0: copy s[0] <- input[0] part: [0, 2]
1: copy s[0] <- input[0] part: [1, 2]
0: sync
1: sync
0: put up.s[1] <- s[0] part: [0, 2]
1: put up.s[1] <- s[0] part: [1, 2]
)");
}

TEST_CASE("sync: parts cut differently need one") {
  REQUIRE(synced_blocks("group 0..2 { copy s[0..2] <- input[0..2] ; put up.s[2] <- s[1] }") == R"(
0: copy s[0..2] <- input[0..2] part: [0, 2]
1: copy s[0..2] <- input[0..2] part: [1, 2]
0: barrier 0..2
1: barrier 0..2
0: put up.s[2] <- s[1] part: [0, 2]
1: put up.s[2] <- s[1] part: [1, 2]
)");
  // Packets are cut in units of their format, LL128 in 120 bytes; LL16 in 16, like granules, though
  // to the prover these are two divisions.
  for (const std::string format : {"LL128", "LL16"}) {
    CAPTURE(format);
    REQUIRE(synced_blocks("buffer p[4] packets: " + format + R"(
    group 0..2 { copy s[0] <- input[0] ; put_packets up.p[1] <- s[0] })") == R"(
0: copy s[0] <- input[0] part: [0, 2]
1: copy s[0] <- input[0] part: [1, 2]
0: barrier 0..2
1: barrier 0..2
0: put_packets up.p[1] <- s[0] part: [0, 2]
1: put_packets up.p[1] <- s[0] part: [1, 2]
)");
  }
}

TEST_CASE("sync: one block after a group waits for each of its blocks") {
  REQUIRE(synced_blocks("group 0..3 { copy s[0] <- input[0] } tb 0 { put up.s[1] <- s[0] }") == R"(
0: copy s[0] <- input[0] part: [0, 3]
1: copy s[0] <- input[0] part: [1, 3]
2: copy s[0] <- input[0] part: [2, 3]
1: sync
1: release order[1]
2: sync
2: release order[0]
0: acquire order[0], order[1]
0: sync
0: put up.s[1] <- s[0]
)");
}

TEST_CASE("sync: what cannot be ordered is an error") {
  Program p = testing::parse(two_ranks(R"(
    semaphore go
    pipeline unit: 1KiB { tb 0 { copy s[0] <- input[0] ; acquire go } }
    tb 1 { put up.s[1] <- s[0] }
    pipeline unit: 1KiB { tb 1 { release go } })"));
  REQUIRE(fail(p, {"sync"}) == R"(
'put up.s[1] <- s[0]' in tb 1 of rank 0 (r = 0) must follow 'copy s[0] <- input[0]' in tb 0 of rank 0 (r = 0), which the semaphores and barriers make impossible
both touch the same bytes; this one is written first
)");
}

TEST_CASE("sync: semaphores that no block releases are an error") {
  Program p = testing::parse(two_ranks(R"(
    semaphore a, b
    tb 0 { acquire a ; release b }
    tb 1 { acquire b ; release a })"));
  REQUIRE(fail(p, {"sync"}) == R"(
'acquire a' in tb 0 of rank 0 (r = 0) waits forever
)");
}

TEST_CASE("sync: its semaphores have a name of their own") {
  REQUIRE(synced_blocks(R"(
    semaphore order
    tb 0 { copy s[0] <- input[0] ; release order }
    tb 1 { put up.s[1] <- s[0] }
    tb 2 { acquire order })") == R"(
0: copy s[0] <- input[0]
0: sync
0: release order2[0]
0: release order
1: acquire order2[0]
1: sync
1: put up.s[1] <- s[0]
2: acquire order
)");
}

TEST_CASE("sync: blocks that all wait for each other have a barrier") {
  // One op a block instead of two, and no semaphores.
  REQUIRE(synced_blocks(R"(
    for b in 0..3 { tb b { copy s[b] <- input[b] } }
    for b in 0..3 { tb b { reduce output[b] <- s[0], s[1], s[2] } })") == R"(
0: copy s[0] <- input[0]
1: copy s[1] <- input[1]
2: copy s[2] <- input[2]
0: barrier 0..3
0: reduce output[0] <- s[0], s[1], s[2]
1: barrier 0..3
1: reduce output[1] <- s[0], s[1], s[2]
2: barrier 0..3
2: reduce output[2] <- s[0], s[1], s[2]
)");
  REQUIRE(synced_blocks(R"(
    tb 0 { copy s[0] <- input[0] }
    tb 1 { copy s[1] <- input[1] }
    tb 0 { copy output[0] <- s[1] }
    tb 1 { copy output[1] <- s[0] })") == R"(
0: copy s[0] <- input[0]
1: copy s[1] <- input[1]
0: barrier 0..2
0: copy output[0] <- s[1]
1: barrier 0..2
1: copy output[1] <- s[0]
)");
}

TEST_CASE("sync: no barrier where it would order more than the semaphores") {
  // What stands in between may wait for another rank, which waits for the other block.
  REQUIRE(synced_blocks(R"(
    tb 0 { copy s[0] <- input[0] ; wait up }
    tb 1 { copy s[1] <- input[1] ; signal up }
    tb 0 { copy output[0] <- s[1] }
    tb 1 { copy output[1] <- s[0] })")
              .find("barrier") == std::string::npos);
  // One waits for the other alone, or for a third.
  REQUIRE(synced_blocks(R"(
    tb 0 { copy s[0] <- input[0] }
    tb 1 { copy s[1] <- input[1] }
    tb 0 { copy output[0] <- s[1] })")
              .find("barrier") == std::string::npos);
  REQUIRE(synced_blocks(R"(
    tb 0 { copy s[0] <- input[0] }
    tb 1 { copy s[1] <- input[1] }
    tb 2 { copy s[2] <- input[2] }
    tb 0 { reduce output[0] <- s[2], s[1] }
    tb 1 { copy output[1] <- s[0] })")
              .find("barrier") == std::string::npos);
}

TEST_CASE("sync: what other orders into one place imply is not ordered again") {
  // tb 2 waits in front of its pipeline for tb 1, which has waited for tb 0.
  REQUIRE(synced_blocks(R"(
    tb 0 { copy s[0] <- input[0] }
    tb 1 { put up.s[3] <- s[0] ; copy s[1] <- input[1] }
    pipeline unit: 1KiB { tb 2 { copy output[0] <- s[0] ; copy output[1] <- s[1] } })") == R"(
0: copy s[0] <- input[0]
0: sync
0: release order[0]
1: acquire order[0]
1: sync
1: put up.s[3] <- s[0]
1: copy s[1] <- input[1]
1: sync
1: release order[1]
2: acquire order[1]
2: sync
2~ copy output[0] <- s[0]
2~ copy output[1] <- s[1]
)");
}

TEST_CASE("sync: a barrier right after the same barrier goes") {
  REQUIRE(synced_blocks(R"(
    tb 0 { copy s[0] <- input[0] }
    tb 1 { put up.s[1] <- input[1] }
    barrier 0..2
    tb 0 { sync }
    barrier 0..2
    tb 1 { put up.s[0] <- s[0] }
    tb 0 { copy output[0] <- input[0] }
    barrier 0..2
    tb 1 { copy output[1] <- s[1] }
    barrier 0..2
    tb 1 { put up.s[2] <- output[0] })") == R"(
0: copy s[0] <- input[0]
1: put up.s[1] <- input[1]
0: barrier 0..2
1: barrier 0..2
1: put up.s[0] <- s[0]
0: copy output[0] <- input[0]
0: barrier 0..2
1: barrier 0..2
1: copy output[1] <- s[1]
0: barrier 0..2
1: barrier 0..2
1: put up.s[2] <- output[0]
)");
}

/// Blocks 0 and 1 release `a`; block 2 acquires it before its op, and after it.
std::string two_releasers(const std::string& semaphore, const std::string& before,
                          const std::string& after,
                          const std::string& more = "launch auto_sync: false") {
  return two_ranks("semaphore " + semaphore + R"(
    tb 0 { copy s[0] <- input[0] ; sync ; release a }
    tb 1 { copy s[1] <- input[1] ; sync ; release a }
    tb 2 { )" + before +
                       " ; sync ; put up.s[2..4] <- s[0..2] ; " + after + " }",
                   more);
}

TEST_CASE(
    "sync: a block that has acquired as often as several blocks release is after all of them") {
  const std::string text = two_releasers("a", "acquire a ; acquire a", "");
  Program p = testing::parse(text);
  testing::run(p, {"sync"});
  // Nothing is added where the compiler may add, either.
  REQUIRE(after({"sync"}, two_releasers("a", "acquire a ; acquire a", "", "")) ==
          after({"sync"}, text));
}

TEST_CASE("sync: fewer acquires than releases leave open whose they were") {
  const auto fails = [](const std::string& text) {
    Program p = testing::parse(text);
    return testing::fail(p, {"sync"}).find("tb 2)") != std::string::npos;
  };
  REQUIRE(fails(two_releasers("a", "acquire a", "acquire a")));
  REQUIRE(fails(two_releasers("a = 1", "acquire a ; acquire a", "")));
}

TEST_CASE("sync: rounds of pipelines are not counted for semaphores with several releasers") {
  Program p = testing::parse(two_ranks(R"(
    semaphore a
    pipeline unit: 1KiB {
      tb 0 { copy s[0] <- input[0] ; sync ; release a }
      tb 1 { copy s[1] <- input[1] ; sync ; release a }
      tb 2 { acquire a ; acquire a ; sync ; put up.s[2] <- s[0] }
    })",
                                       "launch auto_sync: false"));
  REQUIRE(testing::fail(p, {"sync"}).find("(rank 0, tb 0)") != std::string::npos);
}

TEST_CASE("sync: auto_sync: false reports which blocks lack an order") {
  Program p = testing::parse(two_ranks(R"(
    tb 0 { copy s[0] <- input[0] }
    tb 1 { put up.s[1] <- s[0] }
    tb 2 { copy s[0] <- input[1] })",
                                       "launch auto_sync: false"));
  const std::string before = testing::listing(p, 0);
  PassOptions options;
  options.only = {"sync"};
  Diagnostics diagnostics;
  REQUIRE_FALSE(run_passes(p, options, diagnostics));
  REQUIRE(testing::listing(p, 0) == before);
  REQUIRE(diagnostics.all().size() == 2);
  std::string text = "\n";
  for (const Note& note : diagnostics.all()[0].notes) text += note.text + "\n";
  REQUIRE(diagnostics.all()[0].message ==
          "nothing makes this op wait for one of another thread block");
  REQUIRE(text == R"(
when r = 0
in 'put up.s[1] <- s[0]' (rank 0, tb 1)
'copy s[0] <- input[0]' (rank 0, tb 0): both touch the same bytes, and this one is written first
'launch auto_sync: false' leaves the order of ops to the program
)");
  // The third op is after the second, once that is after the first.
  REQUIRE(
      diagnostics.all()[1].notes[2].text ==
      "'put up.s[1] <- s[0]' (rank 0, tb 1): both touch the same bytes, and this one is written "
      "first");
}

TEST_CASE("sync: too many blocks that wait for each other are reported at the op") {
  // More blocks than a program may name; plans of others may have them.
  Program p = testing::parse(two_ranks("tb 0 { for b in 0..20000 { copy s[0] <- input[0] } }"));
  for (Rank& rank : p.ranks) {
    rank.blocks = 20000;
    for (uint32_t b = 0; b < rank.blocks; ++b) rank.ops[b].block = b;
  }
  REQUIRE(testing::fail(p, {"sync"}) == R"(
up to this op, the order among the 20000 thread blocks of rank 0 takes more than 512 MiB of memory
when r = 0, b = 3356
in 'copy s[0] <- input[0]' (rank 0, tb 3356)
)");
}

TEST_CASE("sync: too many chunks are reported at the op, with the limit") {
  Program p = testing::parse(two_ranks(R"(
    buffer big[40000000]
    tb 0 { copy big[0..20000000] <- big[20000000..40000000] })"));
  REQUIRE(testing::fail(p, {"sync"}) == R"(
up to this op, those of rank 0 refer to more than 33554432 chunks
when r = 0
in 'copy big[0..20000000] <- big[20000000..40000000]' (rank 0, tb 0)
)");
}

}  // namespace mscclc
