// What a wait takes, in which order, and what it learns.
#include "passes/prove/processes/counters.h"

#include <catch2/catch.hpp>

#include "passes/testing/test_text.h"

namespace mscclc::proof {
namespace {

/// All that counters need, of a plan of two ranks.
struct Fixture {
  explicit Fixture(const std::string& body) : program(made(body)) {}

  static Program made(const std::string& body) {
    Program program = testing::parse(
        "program t\ncollective sendrecv(ranks: 2, shift: 1)\nrank r in 0..2 {\n"
        "  channel up = memory(1 - r)\n  semaphore free = 1\n  tb 0 {\n" +
        body + "  }\n}\n");
    testing::run(program, {"assign", "groups", "split"});
    return program;
  }
  const Op& op(uint32_t rank, uint32_t i) const { return program.ranks[rank].ops[i]; }
  uint32_t block(uint32_t rank) const { return system.block_process(rank, 0); }
  const Operand& target(uint32_t rank, uint32_t i) const { return program.dsts(op(rank, i))[0]; }

  Program program;
  Symmetry none{program};
  System system{program, none, false};
  RunOptions options;
  CallOrder calls{system, options};
  ThreadBlocks blocks{system};
  Knowledge knowledge{system, calls, blocks};
  FindingList findings{false};
  Counters counters{system, blocks, knowledge, findings};
};

TEST_CASE("a wait takes what was signalled, learns it, and is woken for it") {
  Fixture run("    signal up\n    wait up\n");
  CHECK_FALSE(run.counters.take(run.block(1), run.op(1, 1), false));
  CHECK(run.blocks.next_ready() == kNone);
  run.blocks[run.block(0)].settled = 5;
  run.counters.signal(run.block(0), run.target(0, 0), false);
  CHECK(run.blocks.next_ready() == run.block(1));
  CHECK(run.counters.take(run.block(1), run.op(1, 1), false));
  REQUIRE(run.blocks[run.block(1)].gains.size() == 1);
  CHECK(run.blocks[run.block(1)].gains[0].process == run.block(0));
  CHECK(run.blocks[run.block(1)].gains[0].done == 5);
  CHECK_FALSE(run.counters.take(run.block(1), run.op(1, 1), false));
}

TEST_CASE("a semaphore begins with what it has, and every count must return") {
  Fixture run("    acquire free\n    release free\n");
  CHECK(run.counters.take(run.block(0), run.op(0, 0), true));
  CHECK(run.blocks[run.block(0)].gains.empty());
  run.counters.report_balance(1);
  REQUIRE(run.findings.size() == 1);
  CHECK(run.findings[0].kind == Finding::Kind::unbalanced);
  CHECK(run.findings[0].semaphore == 0);
  CHECK(run.findings[0].surplus == -1);
}

TEST_CASE("tokens are taken in the order in which they were given") {
  TokenQueue tokens;
  for (uint32_t i = 0; i < 10; ++i) {
    tokens.give({.strong = {.done = i}, .weak = {}});
    if (i % 3 == 2) CHECK(tokens.take().strong.done == i / 3);
  }
  for (uint32_t i = 3; i < 10; ++i) CHECK(tokens.take().strong.done == i);
  CHECK(tokens.empty());
}

}  // namespace
}  // namespace mscclc::proof
