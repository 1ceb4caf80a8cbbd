// Scratch that holds a few units of a pipeline: what the pass adds, and that results are right for
// sizes around the edges of units, under many schedules.
#include <catch2/catch.hpp>

#include "executor/simulator/run.h"
#include "passes/testing/test_text.h"

namespace mscclc {
namespace {

using testing::after;
using testing::two_ranks;

/// Two ranks exchange their inputs; `body` sees scratch of two units and the channels.
std::string exchange(std::string_view body) {
  return "program t\ncollective allreduce(ranks: 2)\nrank r in 0..2 {\n"
         "  buffer s[1] units: 2\n  buffer far[1]\n"
         "  channel enter = memory(1 - r)\n  channel up = memory(1 - r)\n" +
         std::string(body) + "\n}\n";
}

constexpr std::string_view kTwoBlocks = R"(
  tb 0 { signal enter relaxed ; wait enter relaxed }
  pipeline unit: 64 {
    tb 0 { copy s[0] <- input[0] ; put up.far[0] <- s[0] ; signal up }
    tb 1 { wait up ; reduce output[0] <- s[0], far[0] }
  })";

constexpr std::string_view kNoBlocks = R"(
  signal enter relaxed ; wait enter relaxed
  pipeline unit: 64 {
    copy s[0] <- input[0] ; put up.far[0] <- s[0] ; signal up
    wait up ; reduce output[0] <- s[0], far[0]
  })";

/// Both of them, expanded.
constexpr std::string_view kExchanged = R"(
0: signal enter relaxed
0: wait enter relaxed
0~ acquire free[0]
0~ copy s[0] <- input[0]
0~ put up.far[0] <- s[0]
0~ signal up
1~ wait up
1~ reduce output[0] <- s[0], far[0]
1~ release free[0]
)";

/// What the receiver has taken out it offers again: two units to begin with.
constexpr std::string_view kFarUnits = R"(
  channel free = memory(1 - r)
  tb 1 { signal free ; signal free }
  pipeline unit: 64 {
    tb 0 { wait free ; put up.s[0] <- input[0] ; signal up }
    tb 1 { wait up ; reduce output[0] <- input[0], s[0] ; signal free }
  }
  tb 0 { wait free ; wait free })";

constexpr std::string_view kGroup = R"(
  tb 0 { signal enter relaxed ; wait enter relaxed }
  pipeline unit: 64 {
    group 0..2 { copy s[0] <- input[0] }
    tb 2 { put up.far[0] <- s[0] ; signal up }
    group 2..4 { wait up ; reduce output[0] <- s[0], far[0] }
  })";

constexpr std::string_view kThreeStages = R"(
  buffer t[1] units: 3
  tb 0 { signal enter relaxed ; wait enter relaxed }
  pipeline unit: 64 {
    tb 0 { copy s[0] <- input[0] }
    tb 1 { copy t[0] <- s[0] }
    tb 2 { put up.far[0] <- t[0] ; signal up }
    tb 3 { wait up ; reduce output[0] <- t[0], far[0] }
  })";

Program compiled(const std::string& text) {
  Sources sources;
  Diagnostics diagnostics;
  PassOptions passes;
  passes.verify_each = true;
  auto program = compile(sources, sources.add("t.mscl", text), {}, passes, diagnostics);
  INFO(render_text(diagnostics, sources));
  REQUIRE(program);
  return std::move(*program);
}

}  // namespace

TEST_CASE("pipeline: the block that fills a unit waits for those that used it two rounds before") {
  REQUIRE(after({"pipeline"}, exchange(kTwoBlocks)) == kExchanged);
  Program p = testing::parse(exchange(kTwoBlocks));
  testing::run(p, {"pipeline"});
  REQUIRE(p.ranks[0].semaphores.at(0).initial == 2);
}

TEST_CASE("pipeline: one block keeps its own rounds apart") {
  REQUIRE(after({"pipeline"}, exchange(R"(
  pipeline unit: 64 { tb 0 { copy s[0] <- input[0] ; copy output[0] <- s[0] } })")) == R"(
0~ copy s[0] <- input[0]
0~ copy output[0] <- s[0]
)");
}

TEST_CASE("pipeline: each pair of blocks has one semaphore, parts stay side by side") {
  REQUIRE(after({"groups", "pipeline"}, exchange(R"(
  pipeline unit: 64 {
    group 0..2 { copy s[0] <- input[0] }
    tb 2 { copy far[0] <- s[0] ; copy output[0] <- s[0] }
  })")) == R"(
0~ acquire free[0]
1~ acquire free[1]
0~ copy s[0] <- input[0] part: [0, 2]
1~ copy s[0] <- input[0] part: [1, 2]
2~ copy far[0] <- s[0]
2~ copy output[0] <- s[0]
2~ release free[0]
2~ release free[1]
)");
}

TEST_CASE("pipeline: units that other ranks fill are left to their signals") {
  Program p = testing::parse(exchange(kFarUnits));
  testing::run(p, {"pipeline"});
  REQUIRE(p.ranks[0].semaphores.empty());
}

TEST_CASE("pipeline: stages find their blocks, and double-buffered scratch its semaphores") {
  REQUIRE(after({"assign", "pipeline"}, exchange(kNoBlocks)) == kExchanged);
}

/// Two blocks of a rank hand units on; `order` comes first in each of them, and last.
std::string hand_over(std::string_view first, std::string_view second, std::string_view more = "") {
  return two_ranks("buffer u[1] units: 2\n" + std::string(more) +
                       "\npipeline unit: 64 {\n  tb 0 { " + std::string(first) + " }\n  tb 1 { " +
                       std::string(second) + " }\n}",
                   "launch auto_sync: false");
}

TEST_CASE("pipeline: under auto_sync: false a missing credit is an error") {
  Program p =
      testing::parse(hand_over("copy u[0] <- input[0] ; sync ; release full",
                               "acquire full ; sync ; copy s[0] <- u[0]", "semaphore full"));
  REQUIRE(testing::fail(p, {"pipeline"}) == R"(
nothing makes this op wait until a unit of 'u' is free again
when r = 0
in 'copy u[0] <- input[0]' (rank 0, tb 0)
'copy s[0] <- u[0]' (rank 0, tb 1): uses the unit, and must have done so 2 rounds before; a semaphore of 2 orders that, released after this op and acquired before the other one
'launch auto_sync: false' leaves the order of ops to the program
)");
}

TEST_CASE("pipeline: what the author's semaphores order is enough, however long the way round") {
  for (const std::string& text :
       {hand_over("acquire free ; sync ; copy u[0] <- input[0] ; sync ; release full",
                  "acquire full ; sync ; copy s[0] <- u[0] ; sync ; release free",
                  "semaphore full, free = 2"),
        hand_over("acquire free ; sync ; copy u[0] <- input[0] ; sync ; release full",
                  "acquire full ; sync ; copy s[0] <- u[0] ; sync ; release read\n}\n"
                  "tb 2 { acquire read ; copy s[1] <- input[1] ; release free",
                  "semaphore full, read, free = 1"),
        hand_over("barrier 0..2 ; copy u[0] <- input[0] ; barrier 0..2",
                  "barrier 0..2 ; barrier 0..2 ; copy s[0] <- u[0]")}) {
    INFO(text);
    Program p = testing::parse(text);
    const std::string before = testing::listing(p, 0);
    testing::run(p, {"pipeline"});
    REQUIRE(testing::listing(p, 0) == before);
    p.launch.auto_sync = true;
    testing::run(p, {"pipeline"});
    REQUIRE(testing::listing(p, 0) == before);
  }
}

TEST_CASE("pipeline: a semaphore that lets the filling block go too far is no credit") {
  for (const char* more : {"semaphore full, free = 3", "semaphore full, free = 2, other"}) {
    const bool other = std::string_view(more).ends_with("other");
    Program p = testing::parse(
        hand_over("acquire free ; sync ; copy u[0] <- input[0] ; sync ; release full",
                  other ? "release free ; acquire full ; sync ; copy s[0] <- u[0]"
                        : "acquire full ; sync ; copy s[0] <- u[0] ; sync ; release free",
                  more));
    testing::fail(p, {"pipeline"});
  }
}

TEST_CASE("pipeline: units used in two pipelines are an error") {
  Program twice = testing::parse(two_ranks(R"(
    buffer u[1] units: 2
    pipeline unit: 64 { tb 0 { copy u[0] <- input[0] } }
    pipeline unit: 64 { tb 0 { copy output[0] <- u[0] } })"));
  REQUIRE(testing::fail(twice, {"pipeline"}) == R"(
'u' holds units and is used in two pipelines of rank 0
the other one is here
)");
}

TEST_CASE("pipeline: a second run adds nothing") {
  for (const std::string_view body : {kTwoBlocks, kNoBlocks, kFarUnits, kGroup, kThreeStages}) {
    Program p = testing::parse(exchange(body));
    testing::run(p, {"assign", "groups", "pipeline"});
    const std::string once = print_ir(p);
    testing::run(p, {"pipeline"});
    REQUIRE(print_ir(p) == once);
    testing::run(p, {"sync"});
    const std::string ordered = print_ir(p);
    testing::run(p, {"pipeline", "sync"});
    REQUIRE(print_ir(p) == ordered);
  }
}

TEST_CASE("pipelines are right for every size around their units") {
  for (const std::string_view body : {kTwoBlocks, kNoBlocks, kFarUnits, kGroup, kThreeStages}) {
    const Program program = compiled(exchange(body));
    Simulator runner(program);
    for (const uint64_t bytes : {0, 4, 60, 64, 68, 124, 128, 132, 192, 256, 1000, 4096}) {
      for (uint64_t seed = 0; seed < 40; ++seed) {
        INFO(body << "\n" << bytes << " bytes, seed " << seed);
        Diagnostics diagnostics;
        const RunResult result = runner.run(
            {.bytes = bytes, .in_place = seed % 2 == 0, .iterations = 3, .schedule_seed = seed},
            diagnostics);
        INFO(render_text(diagnostics, {}));
        REQUIRE(result.status == RunStatus::right);
      }
    }
  }
}

}  // namespace mscclc
