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
