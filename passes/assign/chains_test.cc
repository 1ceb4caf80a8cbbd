// Programs without thread blocks: which chains `assign` finds, and what must stay one sequence.
#include "passes/assign/chains.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "passes/testing/test_text.h"

namespace mscclc {
namespace {

using testing::after;
using testing::parse;
using testing::two_ranks;

/// A program of three ranks: `body` is that of all.
std::string three_ranks(std::string_view collective, std::string_view body,
                        std::string_view more = "") {
  return fmt::format(
      "program t\ncollective {}\n{}\nrank r in 0..3 {{\n  let others = 0..3 except r\n"
      "  channel ch[p in others] = memory(p)\n{}\n}}\n",
      collective, more, body);
}

/// A gather in which every rank talks with one after the other.
constexpr std::string_view kInTurn = R"(
  for p in others {
    signal ch[p] relaxed ; wait ch[p] relaxed
    put ch[p].output[r] <- input
    signal ch[p] ; wait ch[p]
  })";

std::string bounded(const std::string& text, uint32_t most) {
  Program program = parse(text);
  PassOptions options;
  options.only = {"assign"};
  options.max_thread_blocks = most;
  Diagnostics diagnostics;
  if (!run_passes(program, options, diagnostics)) {
    const Diagnostic& d = diagnostics.all().back();
    return "\n" + d.message + "\n" + d.notes.at(0).text + "\n";
  }
  return testing::listing(program, 0);
}

/// The number of blocks of rank 0.
uint32_t blocks(const std::string& text) {
  Program program = parse(text);
  testing::run(program, {"assign"});
  return program.ranks[0].blocks;
}

}  // namespace

TEST_CASE("chains: conversations with different ranks go on at once") {
  REQUIRE(after({"assign"}, three_ranks("allgather(ranks: 3)", kInTurn)) == R"(
0: signal ch[1] relaxed
0: wait ch[1] relaxed
0: put ch[1].output[0] <- input[0]
0: signal ch[1]
0: wait ch[1]
1: signal ch[2] relaxed
1: wait ch[2] relaxed
1: put ch[2].output[0] <- input[0]
1: signal ch[2]
1: wait ch[2]
)");
}

TEST_CASE("chains: with fewer blocks equal ops of several chains stand side by side") {
  REQUIRE(bounded(three_ranks("allgather(ranks: 3)", kInTurn), 1) == R"(
0: signal ch[1] relaxed
0: signal ch[2] relaxed
0: wait ch[1] relaxed
0: wait ch[2] relaxed
0: put ch[1].output[0] <- input[0]
0: put ch[2].output[0] <- input[0]
0: signal ch[1]
0: signal ch[2]
0: wait ch[1]
0: wait ch[2]
)");
}

TEST_CASE("chains: an output written before its rank is in the call keeps the sequence") {
  // The first signals are missing: only the order of the ops protects the outputs, if at all.
  REQUIRE(blocks(three_ranks("allgather(ranks: 3)", R"(
    for p in others { put ch[p].output[r] <- input ; signal ch[p] ; wait ch[p] })")) == 1);
}

TEST_CASE("chains: a word that speaks for others keeps the sequence") {
  // Rank 0 signals rank 2 through channel b that rank 1 is done with the shared chunk.
  const std::string text = R"(
program t
collective custom(ranks: 3, input: 1, output: 1, inplace: false)
ensure output[0] at q = input[0] at q for q in 0..3
rank 0 {
  channel a = memory(1)
  channel b = memory(2)
  copy output[0] <- input[0]
  wait a
  signal b
}
rank 1 {
  channel a = memory(0)
  channel c = memory(2) to c
  put c.s[0] <- input[0]
  copy output[0] <- input[0]
  signal a
}
rank 2 {
  buffer s[1]
  channel b = memory(0)
  channel c = memory(1) to c
  wait b
  copy s[0] <- input[0]
  copy output[0] <- s[0]
})";
  Program program = parse(text);
  assign::Chains chains;
  REQUIRE_FALSE(assign::find_chains(program, chains));
}

TEST_CASE("chains: packets of one chunk to all are one op, chunks are apart") {
  REQUIRE(after({"assign", "fuse"}, three_ranks("allreduce(ranks: 3, chunks: 2)", R"(
    buffer inbox[others, 2] packets: LL16
    for b in 0..2 {
      for p in others { put_packets ch[p].inbox[r, b] <- input[b] }
      reduce_packets output[b] <- input[b], inbox[p, b] for p in others
    })")) == R"(
0: put_packets ch[1].inbox[0], ch[2].inbox[0] <- input[0], input[0]
0: reduce_packets output[0] <- input[0], inbox[0], inbox[2]
1: put_packets ch[1].inbox[1], ch[2].inbox[1] <- input[1], input[1]
1: reduce_packets output[1] <- input[1], inbox[1], inbox[3]
)");
}

TEST_CASE("chains: semaphores, auto_sync: false and packets among signals keep the sequence") {
  REQUIRE(blocks(two_ranks("semaphore q ; copy s[0] <- input[0] ; release q ; acquire q ; "
                           "copy s[1] <- input[1]")) == 1);
  REQUIRE(blocks(two_ranks("copy s[0] <- input[0] ; copy s[1] <- input[1]")) == 2);
  REQUIRE(blocks(two_ranks("copy s[0] <- input[0] ; copy s[1] <- input[1]",
                           "launch auto_sync: false")) == 1);
  REQUIRE(blocks(two_ranks("buffer k[1] packets: LL8 ; put_packets up.k[0] <- input[0] ; "
                           "unpack_packets s[0] <- k[0] ; signal up relaxed ; wait up relaxed")) ==
          1);
}

TEST_CASE("chains: stages of a pipeline have blocks of their own") {
  const std::string text = three_ranks("allreduce(ranks: 3, chunks: 3)", R"(
    buffer partial[others]
    channel down[p in others] = memory(p)
    pipeline unit: 1KiB {
      for p in others { put ch[p].partial[r] <- input[p] }
      signal ch[p] for p in others
      wait ch[p] for p in others
      reduce output[r] <- input[r], partial[p] for p in others
      for p in others { put down[p].output[r] <- output[r] }
      signal down[p] for p in others
      wait down[p] for p in others
    })");
  REQUIRE(after({"assign", "fuse"}, text) == R"(
0~ put ch[1].partial[0], ch[2].partial[0] <- input[1], input[2]
0~ signal ch[1], ch[2]
1~ wait ch[1], ch[2]
1~ reduce_send output[0], down[1].output[0], down[2].output[0] <- input[0], partial[0], partial[1]
1~ signal down[1], down[2]
2~ wait down[1], down[2]
)");
}

TEST_CASE("chains: stages that cannot be proved apart hand on in every round") {
  // The sender does not learn that the call before has ended: the stages keep their order.
  REQUIRE(after({"assign"}, two_ranks(R"(
    pipeline unit: 1KiB {
      put up.s[0] <- input[0]
      signal up
      wait up
      copy output[0] <- s[0]
    }
    copy output[1] <- s[0])")) == R"(
0~ put up.s[0] <- input[0]
0~ signal up
0~ release turn[0]
1~ acquire turn[0]
1~ wait up
1~ copy output[0] <- s[0]
1: release turn[1]
0: acquire turn[1]
0: copy output[1] <- s[0]
)");
}

TEST_CASE("chains: rounds over several chunks, or signals of other rounds, keep one block") {
  REQUIRE(blocks(two_ranks(R"(
    pipeline unit: 1KiB, chunks: 2 {
      put up.s[0..2] <- input[0..2] ; signal up
      wait up ; copy output[0..2] <- s[0..2]
    })")) == 1);
  REQUIRE(blocks(two_ranks(R"(
    signal up
    pipeline unit: 1KiB {
      put up.s[0] <- input[0] ; signal up
      wait up ; copy output[0] <- s[0]
    }
    wait up)")) == 1);
}

TEST_CASE("assign: the limit counts instances, and what is pinned stays") {
  REQUIRE(bounded(two_ranks("tb 8 { copy s[0] <- input[0] }"), 4) == R"(
rank 0 has 9 thread blocks, but at most 4 may be used
the limit is --max-thread-blocks; blocks that the program names stay
)");
  REQUIRE(bounded(two_ranks("tb 1 { copy s[0] <- input[0] }", "launch instances: 3"), 5) == R"(
rank 0 has 2 thread blocks in each of 3 instances, but at most 5 may be used
the limit is --max-thread-blocks; blocks that the program names stay
)");
  REQUIRE(bounded(two_ranks("copy s[0] <- input[0] ; copy s[1] <- input[1]", "launch instances: 2"),
                  2) == R"(
0: copy s[0] <- input[0]
0: copy s[1] <- input[1]
)");
  REQUIRE(bounded(two_ranks("tb 0 { copy s[0] <- input[0] } copy s[1] <- input[1]"), 1) == R"(
0: copy s[0] <- input[0]
0: copy s[1] <- input[1]
)");
}

}  // namespace mscclc
