// Numbers of rounds: what goes wrong with many rounds only is found, whatever hides it with few;
// what is right with any number is proved.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "passes/prove/prove_test_text.h"

namespace mscclc {
namespace {

using testing::race;
using testing::verdict;

/// Rank 0 sends its input to rank 1 through `units` units of scratch; rank 1 gives `credits` before
/// the pipeline, one in each round, and rank 0 takes what is left.
std::string through_units(uint32_t units, uint32_t credits) {
  std::string give, drain;
  for (uint32_t i = 0; i < credits; ++i) give += "signal up\n", drain += "wait up\n";
  return fmt::format(R"(program t
collective custom(ranks: 2, input: 1, output: 1, inplace: false)
ensure output[0] at 1 = input[0] at 0
rank 0 {{
  channel up = memory(1)
  pipeline unit: 1KiB {{ tb 0 {{ wait up
sync
put up.s[0] <- input[0]
sync
signal up }} }}
  tb 0 {{ {} }}
}}
rank 1 {{
  buffer s[1] units: {}
  channel up = memory(0)
  tb 0 {{ {} }}
  pipeline unit: 1KiB {{ tb 0 {{ wait up
sync
copy output[0] <- s[0]
sync
signal up }} }}
}}
)",
                     drain, units, give);
}

TEST_CASE("as many credits as units are right, one more is one too many") {
  const uint32_t units = GENERATE(2u, 3u, 4u, 9u, 20u, 100u);
  INFO(units << " units");
  CHECK(verdict(through_units(units, units)) == "proved");
  CHECK(verdict(through_units(units, units - 1)) == "proved");
  CHECK(verdict(through_units(units, units + 1)) == race("s[0] of rank 1"));
}

TEST_CASE("a thousand credits", "[large]") {
  CHECK(verdict(through_units(1000, 1000)) == "proved");
  CHECK(verdict(through_units(1000, 1001)) == race("s[0] of rank 1"));
}

/// The same by a port that begins with credits, once for all calls. With a gate, rank 1 says in
/// each call that it is in it, so that it has read all that came in the calls before.
std::string ahead(uint32_t units, uint32_t credits, bool gate) {
  return fmt::format(R"(program t
collective custom(ranks: 2, input: 1, output: 1, inplace: false)
ensure output[0] at 1 = input[0] at 0
rank 0 {{
  channel up = port(1) credits: {0}
  channel gate = memory(1)
  tb 0 {{ {1} }}
  pipeline unit: 1KiB {{ tb 0 {{ wait up
sync
put up.s[0] <- input[0]
signal up
flush up }} }}
}}
rank 1 {{
  buffer s[1] units: {2}
  channel up = port(0)
  channel gate = memory(0)
  tb 0 {{ {3} }}
  pipeline unit: 1KiB {{ tb 0 {{ wait up
sync
copy output[0] <- s[0]
sync
signal up }} }}
}}
)",
                     credits, gate ? "wait gate relaxed" : "", units,
                     gate ? "signal gate relaxed" : "");
}

TEST_CASE("credits that a channel begins with, in a pipeline") {
  const uint32_t units = GENERATE(2u, 3u, 9u, 100u);
  INFO(units << " units");
  CHECK(verdict(ahead(units, 1, true)) == "proved");
  CHECK(verdict(ahead(units, units, true)) == "proved");
  CHECK(verdict(ahead(units, units + 1, true)) == race("s[0] of rank 1"));
  CHECK(verdict(ahead(units, 0, true)).starts_with("stuck: "));
}

TEST_CASE("credits go on from call to call: after one of a single round all units may be unread") {
  CHECK(verdict(ahead(4, 1, false)) == "proved");
  CHECK(verdict(ahead(4, 2, false)) == race("s[0] of rank 1"));
}

TEST_CASE("units without flow control, however many") {
  const uint32_t units = GENERATE(2u, 3u, 50u);
  CHECK(verdict(fmt::format(R"(program nofc
collective custom(ranks: 2, input: 1, output: 1, inplace: false)
ensure output[0] at 1 = input[0] at 0
rank 0 {{
  channel up = memory(1)
  tb 0 {{ wait up relaxed }}
  pipeline unit: 1KiB {{ tb 0 {{ put up.s[0] <- input[0]
sync
signal up }} }}
}}
rank 1 {{
  buffer s[1] units: {}
  channel up = memory(0)
  tb 0 {{ signal up relaxed }}
  pipeline unit: 1KiB {{ tb 0 {{ wait up
sync
copy output[0] <- s[0] }} }}
}}
)",
                            units)) == race("s[0] of rank 1"));
}

TEST_CASE("a port's source needs a flush before its unit is filled again") {
  const auto sent = [](const std::string& flush) {
    return R"(program t
collective custom(ranks: 2, input: 1, output: 1, inplace: false)
ensure output[0] at 1 = input[0] at 0
rank 0 {
  buffer s[1] units: 3
  channel net = port(1)
  tb 0 { wait net relaxed }
  pipeline unit: 1KiB { tb 0 { copy s[0] <- input[0]
sync
put net.output[0] <- s[0]
)" + flush +
           R"(signal net } }
  tb 0 { wait net }
}
rank 1 {
  channel net = port(0)
  tb 0 { signal net relaxed }
  pipeline unit: 1KiB { tb 0 { wait net } }
  tb 0 { sync
signal net }
}
)";
  };
  CHECK(verdict(sent("flush net\nsync\n")) == "proved");
  CHECK(verdict(sent("")) == race("s[0] of rank 0"));
}

/// Two ranks that use one channel each way: first up in one pipeline, then down in another, but in
/// opposite orders; rank 1 gives `credits` before.
std::string crossed(uint32_t credits) {
  std::string give, drain = "sync\n";
  for (uint32_t i = 0; i < credits; ++i) give += "signal a\n", drain += "wait a\n";
  return fmt::format(R"(program t
collective custom(ranks: 2, input: 1, output: 1, inplace: false)
ensure output[0] at 0 = input[0] at 0
rank 0 {{
  channel a = memory(1)
  channel b = memory(1)
  pipeline unit: 1KiB {{ tb 0 {{ wait a
copy output[0] <- input[0] }} }}
  pipeline unit: 1KiB {{ tb 0 {{ signal b
copy output[0] <- input[0] }} }}
  tb 0 {{ {} }}
}}
rank 1 {{
  channel a = memory(0)
  channel b = memory(0)
  tb 0 {{ {} }}
  pipeline unit: 1KiB {{ tb 0 {{ wait b }} }}
  pipeline unit: 1KiB {{ tb 0 {{ signal a }} }}
}}
)",
                     drain, give);
}

TEST_CASE("a deadlock between two pipelines in a row that credits hide for some rounds") {
  const uint32_t credits = GENERATE(1u, 3u, 12u, 40u);
  CHECK(verdict(crossed(credits)).starts_with("stuck: "));
}

TEST_CASE("the same with a port that begins with credits") {
  const uint32_t credits = GENERATE(1u, 3u, 40u);
  CHECK(verdict(fmt::format(R"(program t
collective custom(ranks: 2, input: 1, output: 1, inplace: false)
ensure output[0] at 0 = input[0] at 0
rank 0 {{
  channel a = port(1) credits: {}
  channel b = port(1)
  pipeline unit: 1KiB {{ tb 0 {{ wait a
copy output[0] <- input[0] }} }}
  pipeline unit: 1KiB {{ tb 0 {{ signal b
copy output[0] <- input[0] }} }}
}}
rank 1 {{
  channel a = port(0)
  channel b = port(0)
  pipeline unit: 1KiB {{ tb 0 {{ wait b }} }}
  pipeline unit: 1KiB {{ tb 0 {{ signal a }} }}
}}
)",
                            credits))
            .starts_with("stuck: "));
}

TEST_CASE("the same inside a rank, with a semaphore") {
  const auto waits = [](uint32_t initial) {
    return verdict(fmt::format(R"(program t
collective custom(ranks: 1, input: 1, output: 1, inplace: false)
ensure output[0] at 0 = input[0] at 0
rank 0 {{
  semaphore full = {0}
  semaphore free = 0
  pipeline unit: 1KiB {{ tb 0 {{ acquire full
copy output[0] <- input[0] }} }}
  pipeline unit: 1KiB {{ tb 0 {{ release free }} }}
  pipeline unit: 1KiB {{ tb 1 {{ acquire free }} }}
  pipeline unit: 1KiB {{ tb 1 {{ release full }} }}
}}
)",
                               initial));
  };
  CHECK(waits(0).starts_with("stuck: "));
  CHECK(waits(1).starts_with("stuck: "));
  CHECK(waits(12).starts_with("stuck: "));
}

TEST_CASE("two pairs of pipelines in opposite orders, with credits both ways") {
  const auto crossed_pairs = [](uint32_t credits) {
    return verdict(fmt::format(R"(program t
collective custom(ranks: 1, input: 1, output: 1, inplace: false)
ensure output[0] at 0 = input[0] at 0
rank 0 {{
  semaphore full[i in 0..2] = 0
  semaphore free[i in 0..2] = {}
  pipeline unit: 1KiB {{ tb 0 {{ acquire free[0]
copy output[0] <- input[0]
sync
release full[0] }} }}
  pipeline unit: 512 {{ tb 0 {{ acquire full[1]
sync
release free[1] }} }}
  pipeline unit: 512 {{ tb 1 {{ acquire free[1]
sync
release full[1] }} }}
  pipeline unit: 1KiB {{ tb 1 {{ acquire full[0]
sync
release free[0] }} }}
}}
)",
                               credits));
  };
  for (const uint32_t credits : {1, 2, 7}) CHECK(crossed_pairs(credits).starts_with("stuck: "));
}

TEST_CASE("a unit read a round late holds nothing that is known") {
  CHECK(verdict(R"(program t
collective custom(ranks: 1, input: 1, output: 1, inplace: false)
ensure output[0] at 0 = input[0] at 0
rank 0 {
  buffer s[1] units: 2
  buffer t[1] units: 2
  pipeline unit: 1KiB { tb 0 { copy s[0] <- input[0]
sync
copy t[0] <- s[0]
sync
copy output[0] <- t[0]
sync } }
}
)") == "proved");
  CHECK(verdict(R"(program t
collective custom(ranks: 1, input: 1, output: 1, inplace: false)
ensure output[0] at 0 = input[0] at 0
rank 0 {
  buffer s[1] units: 2
  pipeline unit: 1KiB { tb 0 { copy s[0] <- input[0]
sync } }
  pipeline unit: 1KiB { tb 0 { copy output[0] <- s[0]
sync
copy s[0] <- input[0]
sync } }
}
)")
            .starts_with("wrong-result: "));
}

/// Rank 0's block gives `give` in a pipeline of its unit, rank 1's takes `take`.
std::string rates(const std::string& give, const std::string& take) {
  return "program t\ncollective custom(ranks: 2, input: 1, output: 1, inplace: false)\n"
         "ensure output[0] at 0 = input[0] at 0\n"
         "rank 0 {\n  channel up = memory(1)\n  tb 0 { copy output[0] <- input[0] }\n" +
         give + "}\nrank 1 {\n  channel up = memory(0)\n" + take + "}\n";
}
const std::string kSignals = "  pipeline unit: 1KiB { tb 0 { signal up } }\n";
const std::string kWaits = "  pipeline unit: 1KiB { tb 0 { wait up } }\n";

TEST_CASE("signals of a round are taken in the same round of as many") {
  CHECK(verdict(rates(kSignals, kWaits)) == "proved");
  CHECK(verdict(rates(kSignals + kSignals, kWaits + kWaits)) == "proved");
  // As often in sum, but not round by round.
  CHECK(verdict(
            rates(kSignals + kSignals, "  pipeline unit: 1KiB { tb 0 { wait up\nwait up } }\n")) ==
        "unpaired-rounds: not decided: signals or releases of one pipeline and what takes them do "
        "not "
        "pair up round by round");
  // Pipelines of one rate may differ in unit and chunks.
  CHECK(verdict(rates(kSignals, "  pipeline unit: 2KiB, chunks: 2 { tb 0 { wait up } }\n")) ==
        "proved");
}

TEST_CASE("what is taken before the pipelines is given before them") {
  const std::string wait = "  tb 0 { wait up }\n", signal = "  tb 0 { signal up }\n";
  CHECK(verdict(rates(signal + kSignals, kWaits + wait)) == "proved");
  CHECK(verdict(rates(signal + kSignals, wait + kWaits)) == "proved");
  CHECK(verdict(rates(kSignals + signal, wait + kWaits)) ==
        "unpaired-rounds: not decided: before its pipeline the taker takes 1, and only 0 are given "
        "before the giver's");
}

TEST_CASE("a ring of pipelines in a row: each sends all before it receives") {
  const std::string text = R"(program t
collective custom(ranks: 3, input: 1, output: 1, inplace: false)
ensure output[0] at 0 = input[0] at 2
ensure output[0] at 1 = input[0] at 0
ensure output[0] at 2 = input[0] at 1
rank r in 0..3 {
  buffer s[1]
  channel next = memory((r + 1) % 3) to prev
  channel prev = memory((r + 2) % 3) to next
  pipeline unit: 1KiB { tb 0 { put next.s[0] <- input[0]
sync
signal next } }
  pipeline unit: 1KiB { tb 0 { wait prev
sync
copy output[0] <- s[0]
sync } }
  tb 0 { signal prev
wait next }
}
)";
  CHECK(verdict(text) == "proved");
}

TEST_CASE("pipelines of different rates in one block") {
  const auto two = [](const std::string& between) {
    return R"(program t
collective custom(ranks: 1, input: 2, output: 2, inplace: false)
ensure output[0] at 0 = input[0] at 0
ensure output[1] at 0 = input[1] at 0
rank 0 {
  buffer s[1]
  pipeline unit: 1KiB { tb 0 { copy s[0] <- input[0] } }
  )" + between +
           R"(
  pipeline unit: 512 { tb 0 { copy output[0] <- s[0]
copy output[1] <- input[1] } }
}
)";
  };
  CHECK(verdict(two("tb 0 { sync }")) == "proved");
  CHECK(verdict(two("")) == race("s[0] of rank 0"));
}

TEST_CASE("a barrier has no rounds, and its packets carry nothing") {
  CHECK(verdict(R"(program t
collective barrier(ranks: 2)
rank r in 0..2 {
  channel ch = memory(1 - r)
  pipeline unit: 1KiB { tb 0 { signal ch ; wait ch } }
}
)")
            .starts_with("not-met: "));
  CHECK(verdict(R"(program t
collective barrier(ranks: 2)
rank r in 0..2 {
  buffer a[1] packets: LL16, copies: 2
  buffer t[1]
  channel ch = memory(1 - r)
  tb 0 { put_packets ch.a[0] <- t[0]
sync
unpack_packets t[0] <- a[0] }
}
)")
            .starts_with("not-met: "));
}

/// Two blocks of rank 0 fill their parts of each round; `reader` takes them at rank 1.
std::string in_parts(const std::string& reader) {
  return R"(program t
collective custom(ranks: 2, input: 1, output: 1, inplace: false)
ensure output[0] at 1 = input[0] at 0
rank 0 {
  channel a = memory(1)
  channel b = memory(1)
  pipeline unit: 1KiB {
    group 0..2 { put a.s[0] <- input[0] }
    tb 0 { sync ; signal a }
    tb 1 { sync ; signal b }
  }
  tb 0 { wait a }
  tb 1 { wait b }
}
rank 1 {
  buffer s[1]
  channel a = memory(0)
  channel b = memory(0)
)" + reader +
         "}\n";
}

TEST_CASE("rounds that are cut in parts at one side only are not decided") {
  CHECK(verdict(in_parts("pipeline unit: 1KiB { tb 0 { wait a ; sync } tb 1 { wait b ; sync }\n"
                         "group 0..2 { copy output[0] <- s[0] } }\n"
                         "tb 0 { sync ; signal a } tb 1 { sync ; signal b }\n")) == "proved");
  CHECK(testing::errors(in_parts("pipeline unit: 1KiB { tb 0 {\n  wait a ; wait b ; sync\n"
                                 "copy output[0] <- s[0]\n} }\n"
                                 "tb 0 { sync ; signal a ; signal b }\n")) == R"(
21: not decided: the rounds of a pipeline are cut at one side only, at s[0] of rank 1
- in 'copy output[0] <- s[0]' (rank 1, tb 0)
- 'put a.s[0] <- input[0] part: [0, 2]' has part 0 of 2 of a round (rank 0, tb 0)
- 'copy output[0] <- s[0]' has all of a round (rank 1, tb 0)
- what orders the rounds is not seen to order their parts: cut both sides alike, so that each block has its part from one other
)");
}

TEST_CASE("a semaphore that several blocks release in rounds orders nothing, and they are named") {
  const auto joined = [](const std::string& first, const std::string& second) {
    return "program t\ncollective custom(ranks: 1, input: 2, output: 2, inplace: false)\n"
           "ensure output[c] at 0 = input[c] at 0 for c in 0..2\nrank 0 {\n  buffer s[2]\n"
           "  semaphore m\n  semaphore n\n  pipeline unit: 1KiB {\n"
           "    tb 0 { copy s[0] <- input[0] ; sync ; release " +
           first + " }\n    tb 1 { copy s[1] <- input[1] ; sync ; release " + second +
           " }\n    tb 2 { acquire " + first + ", " + second + R"(
           sync
           copy output[0] <- s[0]
           copy output[1] <- s[1]
    }
  }
}
)";
  };
  CHECK(verdict(joined("m", "n")) == "proved");
  const std::string text = testing::errors(joined("m", "m"));
  INFO(text);
  CHECK(text.starts_with("\n13: race at s[0] of rank 0: nothing orders two accesses\n"));
  CHECK(text.find("- tb 0 and 1 release 'm' in a pipeline: the block that acquires it cannot know "
                  "which release it takes; use a semaphore for each\n") != std::string::npos);
}

}  // namespace
}  // namespace mscclc
