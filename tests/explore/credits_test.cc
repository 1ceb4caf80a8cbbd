// Channels that begin with credits: the prover against every interleaving, for each number of
// credits and of copies of what they protect.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "passes/prove/prove_test_text.h"
#include "tests/explore/explore.h"

namespace mscclc {
namespace {

/// Rank 0 hands its input to rank 1 through scratch of so many copies; rank 1 says in each call
/// that it is in it, which rank 0 learns so many calls later.
Program hand_over(uint32_t copies, uint32_t credits) {
  return testing::as_written(fmt::format(R"(program t
collective broadcast(ranks: 2, root: 0, inplace: false)
rank 0 {{
  buffer box[1] copies: {0}
  channel net = port(1) to net credits: {1}
  tb 0 {{
    copy box[0] <- input[0]
    sync
    put net.box[0] <- box[0]
    signal net
    copy output[0] <- input[0]
    wait net relaxed
  }}
}}
rank 1 {{
  buffer box[1] copies: {0}
  channel net = port(0) to net
  tb 0 {{
    signal net relaxed
    wait net
    sync
    copy output[0] <- box[0]
  }}
}}
)",
                                         copies, credits));
}

/// The same round by round, through so many units; rank 0 learns so many rounds later that one was
/// read. With a gate, rank 1 also says in each call that it is in it.
Program pipelined(uint32_t units, uint32_t credits, bool gate) {
  return testing::as_written(fmt::format(R"(program t
collective custom(ranks: 2, input: 1, output: 1, inplace: false)
ensure output[0] at 1 = input[0] at 0
rank 0 {{
  channel net = port(1) to net credits: {1}
  channel gate = memory(1) to gate
  tb 0 {{ {2} }}
  pipeline unit: 16 {{ tb 0 {{
    wait net
    sync
    put net.box[0] <- input[0]
    signal net
    flush net
  }} }}
}}
rank 1 {{
  buffer box[1] units: {0}
  channel net = port(0) to net
  channel gate = memory(0) to gate
  tb 0 {{ {3} }}
  pipeline unit: 16 {{ tb 0 {{
    wait net
    sync
    copy output[0] <- box[0]
    sync
    signal net
  }} }}
}}
)",
                                         units, credits, gate ? "wait gate relaxed" : "",
                                         gate ? "signal gate relaxed" : ""));
}

TEST_CASE("a rank may be as many rounds ahead as there are units, or one if calls follow unasked") {
  constexpr uint32_t kUnits = 2;
  for (const bool gate : {false, true}) {
    for (uint32_t credits = 0; credits <= 3; ++credits) {
      const Program program = pipelined(kUnits, credits, gate);
      Exploration found;
      for (uint64_t rounds = 1; rounds <= kUnits + 1; ++rounds) {
        found = explore(program, {.calls = 3, .bytes = 16 * rounds, .reduced = true});
        if (found.verdict != Verdict::right) break;
      }
      INFO(credits << " credits, gate: " << gate << ": " << name(found.verdict) << ": "
                   << found.reason);
      const bool right = 1 <= credits && credits <= (gate ? kUnits : 1);
      CHECK((found.verdict == Verdict::right) == right);
      CHECK((testing::verdict(program) == "proved") == right);
    }
  }
}

TEST_CASE("a rank may be as many calls ahead as it has copies to spare") {
  for (uint32_t copies = 1; copies <= 4; ++copies) {
    for (uint32_t credits = 0; credits <= 3; ++credits) {
      const Program program = hand_over(copies, credits);
      const Exploration found = explore(program, {.calls = copies + 2, .reduced = true});
      INFO(copies << " copies, " << credits << " credits: " << name(found.verdict) << ": "
                  << found.reason);
      const bool right = credits + 2 <= copies;
      CHECK((found.verdict == Verdict::right) == right);
      CHECK((testing::verdict(program) == "proved") == right);
    }
  }
}

}  // namespace
}  // namespace mscclc
