#include <catch2/catch.hpp>

#include "passes/testing/test_text.h"

namespace mscclc {
namespace {

using testing::after;
using testing::fail;
using testing::parse;
using testing::run;
using testing::two_ranks;

std::string completed(const std::string& text) {
  return after({"assign", "groups", "replicate", "sync", "split", "complete_sums"}, text);
}

/// Whether the ops of rank 0 that add up are complete, in order: "yes no".
std::string marks(const std::string& text, uint32_t rank = 0) {
  Program p = parse(text);
  run(p, {"assign", "groups", "replicate", "sync", "split", "complete_sums"});
  std::string out;
  for (const Op& op : p.ranks[rank].ops) {
    if (!info(op.kind).has(kReduces)) continue;
    out += (out.empty() ? "" : " ") + std::string(op.complete ? "yes" : "no");
  }
  return out;
}

std::string three_ranks(std::string_view body,
                        std::string_view contract = "allreduce(ranks: 3, chunks: 3)") {
  return "program t\ncollective " + std::string(contract) +
         "\nrank r in 0..3 {\n  let others = 0..3 except r\n  channel up[p in others] = "
         "memory(p)\n" +
         std::string(body) + "\n}\n";
}

}  // namespace

TEST_CASE("complete_sums: the op that adds the last contribution") {
  REQUIRE(completed(two_ranks(R"(tb 0 {
    put up.s[r] <- input[0]
    signal up ; wait up
    reduce output[0] <- input[0], s[1 - r]
  })")) == R"(
0: put up.s[0] <- input[0]
0: sync
0: signal up
0: wait up
0: sync
0: reduce output[0] <- input[0], s[1] complete
)");
}

TEST_CASE("complete_sums: of a sum in steps only the last") {
  REQUIRE(marks(three_ranks(R"(tb 0 {
    signal up[p] for p in others relaxed
    wait up[p] for p in others relaxed
    read_reduce output[0] <- input[0], up[others[0]].input[0]
    read_reduce output[0] <- output[0], up[others[1]].input[0]
  })",
                            "allreduce(ranks: 3, chunks: 3, inplace: false)")) == "no yes");
}

TEST_CASE("complete_sums: not what is added up twice, or not of one chunk") {
  REQUIRE(marks(three_ranks(R"(
    buffer s[2]
    tb 0 {
      let a = others[0], b = others[1]
      read_reduce s[0] <- input[r, 0], up[a].input[r, 0], up[a].input[r, 0]
      read_reduce s[1] <- input[r, 0], up[a].input[r, 0], up[b].input[(r + 1) % 3, 0]
      read_reduce output[0] <- input[r, 0], up[a].input[r, 0], up[b].input[r, 0]
    })",
                            "reducescatter(ranks: 3, inplace: false)")) == "no no yes");
}

TEST_CASE("complete_sums: packets, also forwarded ones") {
  REQUIRE(marks(three_ranks(R"(
    buffer p[3] packets: LL16
    buffer q[3] packets: LL16
    tb 0 {  # everything goes round by the next rank
      put_packets up[(r + 1) % 3].p[r] <- input[0]
      copy_packets p[r] <- input[0]
      read_put_packets up[(r + 1) % 3].q[(r + 2) % 3] <- p[(r + 2) % 3]
      reduce_packets output[0] <- p[(r + 2) % 3], input[0], q[(r + 1) % 3]
    })")) == "yes");
}

TEST_CASE("complete_sums: a sentinel slot is empty once it has been read") {
  const std::string body = R"(
    buffer q[2] packets: sentinel
    tb 0 {
      put_packets up.q[0] <- input[0]
      reduce_packets output[0] <- input[0], q[0]
      if MORE { unpack_packets output[1] <- q[0] }
    })";
  const std::string text = two_ranks(body, "select dtypes: [f32]\nparam MORE = 0 == 1");
  REQUIRE(marks(text) == "yes");
  Program p = parse(two_ranks(body, "select dtypes: [f32]\nparam MORE = 0 == 0"));
  REQUIRE(
      fail(p, {"split", "complete_sums"})
          .find(
              "waits for packets; 'reduce_packets output[0] <- input[0], q[0] complete' in tb 0 of "
              "rank 0 (r = 0) has emptied the slot: sentinel packets can be read once") !=
      std::string::npos);
}

TEST_CASE("complete_sums: group ops, slice by slice") {
  REQUIRE(completed(two_ranks(R"(
    group 0..2 { put up.s[r] <- input[0] ; signal up ; wait up }
    group 0..2 { reduce output[0] <- input[0], s[1 - r] })")) == R"(
0: put up.s[0] <- input[0] part: [0, 2]
0: barrier 0..2
0: signal up
0: wait up
0: barrier 0..2
0: reduce output[0] <- input[0], s[1] part: [0, 2], complete
1: put up.s[0] <- input[0] part: [1, 2]
1: barrier 0..2
1: barrier 0..2
1: reduce output[0] <- input[0], s[1] part: [1, 2], complete
)");
  // The halves are put by different ops.
  REQUIRE(marks(two_ranks(R"(
    buffer p[4] packets: LL16
    group 0..2 { put_packets up.p[0] <- input[0] }
    group 2..5 { reduce_packets output[0] <- input[0], p[0] })")) == "yes yes yes");
}

TEST_CASE("complete_sums: at a switch the members are added up") {
  REQUIRE(marks(two_ranks(R"(
    channel sw = switch(0..2)
    tb 0 {
      copy s[0] <- input[r]
      copy s[1] <- input[1 - r]
      signal up ; wait up
      switch_reduce_broadcast sw.s[r] <- sw.s[r]
      switch_reduce output[0] <- sw.s[1]
    })",
                          "", "allreduce(ranks: 2, chunks: 4, inplace: false)")) == "no no");
  REQUIRE(marks(two_ranks(R"(
    channel sw = switch(0..2)
    tb 0 {
      copy s[0] <- input[0]
      copy s[1] <- input[1]
      signal up ; wait up
      switch_reduce_broadcast sw.s[r] <- sw.s[r]
    })")) == "yes");
}

TEST_CASE("complete_sums: in place, input and output are one") {
  REQUIRE(marks(two_ranks(R"(
    tb 0 {
      if r == 0 { put up.s[0] <- output[0] ; signal up } else { wait up ; reduce input[0] <- output[0], s[0] }
    })",
                          "", "allreduce(ranks: 2, chunks: 4, inplace: true)"),
                1) == "yes");
}

TEST_CASE("complete_sums: every instance, blocked or not") {
  for (const char* policy : {"interleaved", "blocked"}) {
    const std::string launch = "launch instances: 3, policy: " + std::string(policy);
    REQUIRE(marks(two_ranks(R"(tb 0 {
      signal up relaxed ; wait up relaxed
      read_reduce output[2 * r] <- input[2 * r], up.input[2 * r]
      read_reduce output[2 * r + 1] <- input[2 * r + 1], up.input[2 * r + 1]
    })",
                            launch)) == "yes yes yes yes yes yes");
  }
}

TEST_CASE("complete_sums: reducescatter and custom contracts") {
  REQUIRE(marks(two_ranks(R"(
    tb 0 { read_reduce output[0] <- input[r, 0], up.input[r, 0] })",
                          "", "reducescatter(ranks: 2, inplace: false)")) == "yes");
  REQUIRE(marks(three_ranks(R"(
    tb 0 { if r < 2 { read_reduce output[0] <- input[0], up[1 - r].input[0] } })",
                            "custom(ranks: 3, input: 1, output: 1, inplace: false)\n"
                            "ensure output[0] at q = reduce(input[0] at p for p in 0..2) "
                            "for q in 0..2")) == "yes");
}

TEST_CASE("complete_sums: a promised sum that is part of another is not where avg divides") {
  // The sums of a scan have 2 and 3 inputs: no call can ask for avg.
  REQUIRE(marks(three_ranks(R"(
    buffer box[1]
    tb 0 {
      if r > 0 { wait up[r - 1] ; reduce output[0] <- box[0], input[0] } else { copy output[0] <- input[0] }
      if r < 2 { put up[r + 1].box[0] <- output[0] ; signal up[r + 1] }
    })",
                            "custom(ranks: 3, input: 1, output: 1, inplace: false)\n"
                            "ensure output[0] at q = reduce(input[0] at p for p in 0..(q + 1)) "
                            "for q in 0..3"),
                1) == "no");
}

TEST_CASE("complete_sums: too many chunks are reported with the limit and the largest buffer") {
  Program p = parse(two_ranks(R"(
    buffer big[2000000000]
    tb 0 { copy big[5] <- input[0] })"));
  REQUIRE(fail(p, {"split", "complete_sums"}) == R"(
the buffers have more than 536870912 chunks, or parts of group ops, together
when r = 0
in 'copy big[5] <- input[0]' (rank 0, tb 0)
the largest is 'big' of rank 0, with 2000000000 chunks
)");
  // The sums that are promised are of as many chunks: they wait until it is known that all fits.
  p = parse(
      two_ranks("tb 0 { copy s[0] <- input[0] }", "", "allreduce(ranks: 2, chunks: 1000000000)"));
  REQUIRE(fail(p, {"split", "complete_sums"})
              .ends_with("the largest is 'input' of rank 0, with 1000000000 chunks\n"));
  // Nor does `assign` take memory for them where no block is named.
  p = parse(two_ranks("buffer big[2000000000]\n copy big[5] <- input[0]"));
  REQUIRE(fail(p, {"assign", "split", "complete_sums"}) == R"(
the buffers have more than 536870912 chunks, or parts of group ops, together
when r = 0
in 'copy big[5] <- input[0]' (rank 0, tb 0)
the largest is 'big' of rank 0, with 2000000000 chunks
)");
}

TEST_CASE("complete_sums: blocks that wait for each other are reported, with what they wait for") {
  Program p = parse(two_ranks(R"(tb 0 { wait up ; signal up })"));
  REQUIRE(fail(p, {"split", "complete_sums"}) == R"(
the program gets stuck: 2 thread blocks wait forever
'wait up' in tb 0 of rank 0 (r = 0) waits for a signal, which needs 'signal up' in tb 0 of rank 1 (r = 1) at 7:18
'wait up' in tb 0 of rank 1 (r = 1) waits for a signal, which needs 'signal up' in tb 0 of rank 0 (r = 0) at 7:18
)");
}

TEST_CASE("complete_sums: a block that waits in vain comes first") {
  Program p = parse(two_ranks(R"(
    buffer q[2] packets: LL8
    semaphore s0, s1
    tb 0 { acquire s0 ; release s1 }
    tb 1 { unpack_packets output[0] <- q[1] ; release s0 }
    tb 2 { barrier 2..4 }
    tb 3 { acquire s1 ; barrier 2..4 })"));
  REQUIRE(fail(p, {"split", "complete_sums"}) == R"(
the program gets stuck: 8 thread blocks wait forever
'unpack_packets output[0] <- q[1]' in tb 1 of rank 0 (r = 0) waits for packets; no op puts packets there any more
'unpack_packets output[0] <- q[1]' in tb 1 of rank 1 (r = 1) waits for packets; no op puts packets there any more
'acquire s0' in tb 0 of rank 0 (r = 0) waits for a release, which needs 'release s0' in tb 1 of rank 0 (r = 0) at 11:47
'barrier 2..4' in tb 2 of rank 0 (r = 0) waits for the others, which needs 'acquire s1' in tb 3 of rank 0 (r = 0) at 13:12
'acquire s1' in tb 3 of rank 0 (r = 0) waits for a release, which needs 'release s1' in tb 0 of rank 0 (r = 0) at 10:25
'acquire s0' in tb 0 of rank 1 (r = 1) waits for a release, which needs 'release s0' in tb 1 of rank 1 (r = 1) at 11:47
'barrier 2..4' in tb 2 of rank 1 (r = 1) waits for the others, which needs 'acquire s1' in tb 3 of rank 1 (r = 1) at 13:12
'acquire s1' in tb 3 of rank 1 (r = 1) waits for a release, which needs 'release s1' in tb 0 of rank 1 (r = 1) at 10:25
)");
}

TEST_CASE("complete_sums: programs that add nothing up are checked for getting stuck, too") {
  Program p = parse(two_ranks("tb 0 { wait up ; signal up }", "", "allgather(ranks: 2)"));
  REQUIRE(fail(p, {"split", "complete_sums"}).find("gets stuck") != std::string::npos);
  REQUIRE(completed(two_ranks("tb 0 { signal up ; wait up }", "", "barrier(ranks: 2)")) ==
          "\n0: signal up\n0: wait up\n");
}

TEST_CASE("complete_sums: needs a split program") {
  Program p = parse(two_ranks("tb 0 { signal up ; wait up }"));
  REQUIRE(fail(p, {"complete_sums"}) == "\n'split' must run before 'complete_sums'\n");
}

TEST_CASE("complete_sums: several blocks release what one acquires") {
  // In either order: it has both once it has taken two.
  const std::string text = two_ranks(R"(
    semaphore a
    tb 0 { copy s[0] <- input[0] ; release a }
    tb 1 { copy s[1] <- input[1] ; release a }
    tb 2 { acquire a ; acquire a ; copy output[0] <- s[0] ; copy output[1] <- s[1] })");
  Program p = parse(text);
  PassOptions all;
  Diagnostics diagnostics;
  REQUIRE(run_passes(p, all, diagnostics));
  REQUIRE(diagnostics.all().empty());
  // One acquire too few does not say whose release it was: not counted on, but ordered besides.
  REQUIRE(after({"sync"}, two_ranks(R"(
    semaphore a
    tb 0 { copy s[0] <- input[0] ; release a }
    tb 1 { release a }
    tb 2 { acquire a ; copy output[0] <- s[0] ; acquire a })")) == R"(
0: copy s[0] <- input[0]
0: sync
0: release order[0]
0: release a
1: release a
2: acquire a
2: acquire order[0]
2: sync
2: copy output[0] <- s[0]
2: acquire a
)");
}

TEST_CASE("complete_sums: warns of blocks that compete for a semaphore") {
  Program p = parse(two_ranks(R"(
    semaphore a = 1
    tb 0 { acquire a ; copy s[0] <- input[0] ; release a }
    tb 1 { acquire a ; copy s[1] <- input[1] ; release a })"));
  PassOptions all;
  Diagnostics diagnostics;
  REQUIRE(run_passes(p, all, diagnostics));
  REQUIRE_FALSE(diagnostics.has_errors());
  REQUIRE(diagnostics.all().size() == 1);
  const Diagnostic& d = diagnostics.all()[0];
  REQUIRE(
      d.message ==
      "'acquire a' in tb 1 of rank 0 (r = 0) competes with another thread block for a semaphore");
  REQUIRE(d.notes[0].text ==
          "with 'acquire a' in tb 0 of rank 0 (r = 0); which of them is served first depends on "
          "the schedule, and one schedule has been tried");
}

}  // namespace mscclc
