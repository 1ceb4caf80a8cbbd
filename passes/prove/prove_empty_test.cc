// Plans whose messages have no bytes: what they do not move, and what is not said of them (lemma
// R5).
#include "passes/prove/prove_test_text.h"

namespace mscclc {
namespace {

/// Both ranks send each other packets, and wait for them.
std::string meets(const std::string& contract) {
  return "program t\ncollective " + contract +
         "\nrank r in 0..2 {\n  buffer s[1] packets: LL16, copies: 2\n  buffer x[1]\n"
         "  channel ch = memory(1 - r)\n  tb 0 {\n    put_packets ch.s[0] <- x[0]\n"
         "    unpack_packets x[0] <- s[0]\n    sync\n  }\n}\n";
}

BetweenCalls between_calls(const std::string& text) {
  Diagnostics diagnostics;
  const Proof proof = prove(testing::as_written(text), diagnostics);
  CHECK(proof.proved);
  return proof.between_calls;
}

TEST_CASE("ranks meet by packets only where there is data") {
  CHECK(between_calls(meets("custom(ranks: 2, input: 1, output: 0)")) == BetweenCalls::meeting);
  CHECK(between_calls(meets("custom(ranks: 2, input: 0, output: 1)")) == BetweenCalls::meeting);
  CHECK(between_calls(meets("custom(ranks: 2, input: 0, output: 0)")) == BetweenCalls::copies);
  CHECK(between_calls(meets("alltoallv(ranks: 2, counts: [0, 0, 0, 0], inplace: false)")) ==
        BetweenCalls::copies);
}

TEST_CASE("ranks do not meet in a call that is not made, whatever they signal") {
  const auto signals = [](const std::string& contract) {
    return "program t\ncollective " + contract +
           "\nrank r in 0..2 {\n  channel ch = memory(1 - r)\n  tb 0 {\n    signal ch\n"
           "    wait ch\n    sync\n  }\n}\n";
  };
  CHECK(between_calls(signals("custom(ranks: 2, input: 1, output: 0)")) == BetweenCalls::meeting);
  CHECK(between_calls(signals("custom(ranks: 2, input: 0, output: 0)")) == BetweenCalls::signals);
  CHECK(between_calls(signals("barrier(ranks: 2)")) == BetweenCalls::meeting);
}

}  // namespace
}  // namespace mscclc
