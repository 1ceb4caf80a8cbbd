// What a rank knew when its call began, relaxed signals and packets of that call pass on: the
// prover against every interleaving.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "passes/prove/prove_test_text.h"
#include "tests/explore/explore.h"

namespace mscclc {
namespace {

/// Rank 1 writes where rank 2 has written in the call before. Between the two rank 0 has waited for
/// rank 2, has begun the call, and has said so to rank 1.
Program relay(const std::string& last, const std::string& said, const std::string& heard) {
  return testing::as_written(fmt::format(R"(program relay
collective custom(ranks: 3, input: 1, output: 1, inplace: false)
ensure output[0] at 0 = input[0] at 1
rank 0 {{
  buffer s[1]
  channel c1 = memory(1)
  channel c2 = memory(2)
  tb 0 {{
    {}
    wait c1
    sync
    copy output[0] <- s[0]
    sync
    signal c2
    {}
  }}
}}
rank 1 {{
  buffer v[1] packets: LL16, copies: 2
  channel c1 = memory(0)
  tb 0 {{
    {}
    put c1.s[0] <- input[0]
    sync
    signal c1
  }}
}}
rank 2 {{
  channel c2 = memory(0)
  tb 0 {{
    wait c2
    sync
    put c2.s[0] <- input[0]
    sync
    signal c2
  }}
}}
)",
                                         said, last, heard));
}

void check_entry(const Program& program, Verdict expected) {
  for (const bool reduced : {false, true}) {
    const Exploration found = explore(program, {.calls = 2, .same_bits = true, .reduced = reduced});
    INFO(found.reason << ", " << found.states << " states");
    CHECK(found.verdict == expected);
  }
}

TEST_CASE(
    "what a rank has waited for in earlier calls is over for ranks that hear of its next call") {
  const std::string signal = "signal c1 relaxed", hears = "wait c1 relaxed ; sync";
  const std::string packets = "put_packets c1.v[0] <- input[0]";
  const std::string takes = "unpack_packets output[0] <- v[0] ; sync";
  for (const auto& [said, heard] : {std::pair(signal, hears), std::pair(packets, takes)}) {
    const Program waited = relay("wait c2", said, heard);
    CHECK(testing::verdict(waited) == "proved");
    check_entry(waited, Verdict::right);
    const Program relaxed = relay("wait c2 relaxed", said, heard);
    CHECK(testing::verdict(relaxed) == testing::race("s[0] of rank 0"));
    check_entry(relaxed, Verdict::race);
  }
}

}  // namespace
}  // namespace mscclc
