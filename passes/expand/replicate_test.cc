#include <catch2/catch.hpp>

#include "passes/testing/test_text.h"

namespace mscclc {
namespace {

using testing::after;
using testing::listing;
using testing::parse;
using testing::run;
using testing::two_ranks;

std::string replicated(std::string_view body, std::string_view launch,
                       std::string_view contract = "allreduce(ranks: 2, chunks: 4)") {
  return after({"groups", "replicate"}, two_ranks(body, "launch " + std::string(launch), contract));
}

}  // namespace

TEST_CASE("replicate: interleaved, chunk c becomes c n + j") {
  REQUIRE(replicated(R"(
    semaphore done
    tb 0 { copy s[1] <- input[2] ; signal up ; release done }
    tb 1 { acquire done ; wait up ; put up.s[3] <- s[1] ; barrier 1..3 }
    tb 2 { barrier 1..3 })",
                     "instances: 2") == R"(
0: copy s[2] <- input[4]
0: signal up[0]
0: release done[0]
2: acquire done[0]
2: wait up[0]
2: put up[0].s[6] <- s[2]
2: barrier [2, 4]
4: barrier [2, 4]
1: copy s[3] <- input[5]
1: signal up[1]
1: release done[1]
3: acquire done[1]
3: wait up[1]
3: put up[1].s[7] <- s[3]
3: barrier [3, 5]
5: barrier [3, 5]
)");
}

TEST_CASE("replicate: everything is multiplied") {
  Program p = parse(
      two_ranks("semaphore a, b = 3\n tb 4 { copy s[0] <- input[0] }", "launch instances: 3"));
  run(p, {"replicate"});
  REQUIRE(p.launch.instances == 1);
  REQUIRE(p.contract.chunks == std::vector<uint32_t>{12});
  const Rank& rank = p.ranks[1];
  REQUIRE(rank.blocks == 15);
  REQUIRE(rank.buffers[kInput].chunks == 12);
  REQUIRE(rank.buffers[kFirstScratch].chunks == 12);
  REQUIRE(rank.channels.size() == 3);
  REQUIRE(p.text(rank.channels[2].label) == "up[2]");
  REQUIRE(rank.channels[2].partner == 2);
  REQUIRE(p.text(rank.semaphores[5].label) == "b[2]");
  REQUIRE(rank.semaphores[5].initial == 3);
}

TEST_CASE("replicate: interleaved ops over several chunks are taken apart") {
  REQUIRE(replicated("tb 0 { copy s[1..3] <- input[0..2] }", "instances: 2") == R"(
0: copy s[2] <- input[0]
0: copy s[4] <- input[2]
1: copy s[3] <- input[1]
1: copy s[5] <- input[3]
)");
}

TEST_CASE("replicate: a put with signal keeps its one signal") {
  REQUIRE(replicated(R"(
    channel net = port(1 - r)
    tb 0 { put_with_signal_and_flush net.s[0..3] <- input[0..3] ; wait net })",
                     "instances: 2") == R"(
0: put net[0].s[0] <- input[0]
0: put net[0].s[2] <- input[2]
0: put_with_signal_and_flush net[0].s[4] <- input[4]
0: wait net[0]
1: put net[1].s[1] <- input[1]
1: put net[1].s[3] <- input[3]
1: put_with_signal_and_flush net[1].s[5] <- input[5]
1: wait net[1]
)");
}

TEST_CASE("replicate: parts of a group op stay side by side") {
  REQUIRE(replicated("group 0..2 { copy s[0..2] <- input[0..2] }", "instances: 2") == R"(
0: copy s[0] <- input[0] part: [0, 2]
2: copy s[0] <- input[0] part: [1, 2]
0: copy s[2] <- input[2] part: [0, 2]
2: copy s[2] <- input[2] part: [1, 2]
1: copy s[1] <- input[1] part: [0, 2]
3: copy s[1] <- input[1] part: [1, 2]
1: copy s[3] <- input[3] part: [0, 2]
3: copy s[3] <- input[3] part: [1, 2]
)");
}

TEST_CASE("replicate: blocked, the j-th run of a row") {
  REQUIRE(replicated("tb 0 { copy s[0..4] <- input[0..4] ; copy s[1] <- input[2] }",
                     "instances: 2, policy: blocked") == R"(
0: copy s[0..4] <- input[0..4]
0: copy s[1] <- input[2]
1: copy s[4..8] <- input[4..8]
1: copy s[5] <- input[6]
)");
}

TEST_CASE("replicate: blocked, a reference to several rows is taken apart between them") {
  REQUIRE(replicated("tb 0 { copy s <- input }", "instances: 2, policy: blocked",
                     "alltoall(ranks: 2, chunks: 2)") == R"(
0: copy s[0..2] <- input[0..2]
0: copy s[2..4] <- input[4..6]
1: copy s[4..6] <- input[2..4]
1: copy s[6..8] <- input[6..8]
)");
}

TEST_CASE("replicate: rows of alltoallv keep their units") {
  const std::string text = R"(program t
    collective alltoallv(ranks: 2, counts: [1, 2, 3, 4], inplace: false)
    launch instances: 2, policy: blocked
    rank r in 0..2 { tb 0 { copy output[r] <- input[r] } })";
  Program p = parse(text);
  run(p, {"replicate"});
  REQUIRE(p.contract.counts == std::vector<int64_t>{1, 2, 3, 4});
  REQUIRE(p.contract.chunks == std::vector<uint32_t>{2});
  REQUIRE(listing(p, 0) == "\n0: copy output[0] <- input[0]\n1: copy output[1] <- input[1]\n");
  // Row 1 of rank 1 begins at chunk 3 of the input (6 now), at chunk 2 of the output (4 now).
  REQUIRE(listing(p, 1) == R"(
0: copy output[4..8] <- input[6..10]
1: copy output[8..12] <- input[10..14]
)");
}

TEST_CASE("replicate: pipelines over several chunks keep their rounds") {
  const std::string body = R"(
    pipeline unit: 4KiB, chunks: 2 { tb 0 { copy s[0..2] <- input[0..2] } }
    pipeline unit: 2KiB { tb 1 { copy s[2] <- input[2] } })";
  Program p = parse(two_ranks(body, "launch instances: 2"));
  run(p, {"replicate"});
  REQUIRE(listing(p, 0) == R"(
0~ copy s[0] <- input[0]
0~ copy s[2] <- input[2]
2~ copy s[4] <- input[4]
1~ copy s[1] <- input[1]
1~ copy s[3] <- input[3]
3~ copy s[5] <- input[5]
)");
  for (const Loop& loop : p.loops) {
    REQUIRE(loop.chunks == 1);
    REQUIRE(loop.unit == 2048);
  }
}

TEST_CASE("replicate: promises of a custom contract") {
  const std::string text = R"(program t
    collective custom(ranks: 2, input: [2, 2], output: 4)
    ensure output[c] at q = reduce(input[c / 2, c % 2] at p for p in 0..2) for q in 0..2, c in 0..4
    launch instances: 2, policy: blocked
    rank r in 0..2 { tb 0 { copy output[1] <- input[0, 1] } })";
  Program p = parse(text);
  run(p, {"replicate"});
  REQUIRE(p.contract.input == std::vector<uint32_t>{2, 4});
  REQUIRE(p.contract.output == std::vector<uint32_t>{8});
  REQUIRE(p.contract.promises.size() == 16);
  for (const Promise& promise : p.contract.promises) {
    for (const CallerChunk& place : promise.inputs) REQUIRE(place.chunk == promise.output.chunk);
  }
  REQUIRE(listing(p, 0) == "\n0: copy output[1] <- input[1]\n1: copy output[3] <- input[3]\n");
}

TEST_CASE("replicate: no more thread blocks than a program may name") {
  Program p = parse(two_ranks("tb 4 { copy s[0] <- input[0] }", "launch instances: 1024"));
  REQUIRE(testing::fail(p, {"replicate"}) ==
          "\n1024 instances of 5 chunks or thread blocks are too many\n");
}

TEST_CASE("replicate: one instance changes nothing") {
  Program p = parse(two_ranks("tb 0 { copy s[0..2] <- input[0..2] }"));
  const std::string before = print_ir(p);
  run(p, {"replicate"});
  REQUIRE(print_ir(p) == before);
}

TEST_CASE("replicate: no more ops than a program may have") {
  const std::string contract = "allreduce(ranks: 2, chunks: 40000000)";
  const auto copies = [&](const std::string& chunks, const std::string& launch) {
    return parse(two_ranks("tb 0 { copy output[" + chunks + "] <- input[" + chunks + "] }",
                           "launch " + launch, contract));
  };
  Program interleaved = copies("0..20000000", "instances: 2");
  CHECK(testing::fail(interleaved, {"replicate"}) == "\n2 instances have more than 64000000 ops\n");
  Program blocked = copies("0..20000000", "instances: 2, policy: blocked");
  run(blocked, {"replicate"});
  CHECK(blocked.ranks[0].ops.size() == 2);
}

}  // namespace mscclc
