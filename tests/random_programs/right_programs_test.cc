// Right programs of kinds that are easily refused: a promised sum that is part of another, and what
// is known by packets that others have sent on. They are proved, and run right.
#include "passes/prove/prove_test_text.h"
#include "tests/explore/explore.h"
#include "tests/random_programs/sets.h"

namespace mscclc::random_programs {
namespace {

using testing::as_written;
using testing::verdict;

void check_right(const std::string& text) {
  const Program program = as_written(text);
  CHECK(verdict(program) == "proved");
  CHECK(fault_on_host(program, 1, 30).value_or("") == "");
  CHECK(fault_of_sizes(program, 1, 30).value_or("") == "");
}

/// A chain: each rank adds its input to what has come, and sends that on. The sum is what it keeps,
/// or what has come is.
std::string scan(bool inclusive, const std::string& answer = "wait next") {
  const std::string promised = inclusive ? "0..q + 1) for q in 0..R" : "0..q) for q in 1..R";
  return "program t\nparam R = 4\ncollective custom(ranks: R, input: 1, output: 1, inplace: "
         "false)\n"
         "ensure output[0] at q = reduce(input[0] at p for p in " +
         promised + R"(
rank r in 0..R {
  buffer box[1]
  buffer sum[1]
  channel prev = memory((r - 1) % R) to next
  channel next = memory((r + 1) % R) to prev
  tb 0 {
    if r > 0 { wait prev ; sync }
)" +
         (inclusive ? "    if r > 0 { reduce output <- box, input } else { copy output <- input }\n"
                      "    sync\n    if r < R - 1 { put next.box <- output ; sync ; signal next }\n"
                    : "    if r > 0 { copy output <- box ; reduce sum <- box, input }\n"
                      "    if r == 0 { copy sum <- input }\n"
                      "    sync\n    if r < R - 1 { put next.box <- sum ; sync ; signal next }\n") +
         "    if r > 0 { signal prev }\n    if r < R - 1 { " + answer + " }\n  }\n}\n";
}

TEST_CASE("sums of the ranks before, with and without the rank itself") {
  for (const bool inclusive : {false, true}) {
    INFO(inclusive);
    check_right(scan(inclusive));
    // The answer is what keeps the next call's sum from the box.
    CHECK(
        verdict(scan(inclusive, "wait next relaxed")).starts_with("race: race at box[0] of rank "));
  }
}

TEST_CASE("a scan whose sum is the term of the next one, straight into its box") {
  const std::string text = R"(program t
collective custom(ranks: 3, input: 1, output: 1, inplace: false)
ensure output[0] at q = reduce(input[0] at p for p in 0..q + 1) for q in 1..3
rank r in 0..3 {
  buffer box[1] packets: LL16, copies: 2
  channel up = memory((r - 1) % 3) to dn
  channel dn = memory((r + 1) % 3) to up
  tb 0 {
    if r == 0 { put_packets dn.box[0] <- input[0] }
    if r > 0 { reduce_packets output[0] <- box[0], input[0] }
    if r == 1 { put_packets dn.box[0] <- output[0] }
    sync
    if r > 0 { signal up }
    if r < 2 { wait dn }
  }
}
)";
  check_right(text);
}

TEST_CASE("a broadcast in thirds that ranks hand on, by packets in two copies") {
  // The root hears from all that they have made use of what it has sent; the others from it.
  const std::string text = R"(program thirds
collective broadcast(ranks: 4, root: 0)
rank 0 {
  channel ra[q in 1..4] = memory(q) to a
  buffer w[3] packets: LL16, copies: 2
  buffer j[1]
  tb 0 {
    for q in 1..4 { put_packets ra[q].s[0] <- input[0] part: [q - 1, 3] }
    copy output[0] <- input[0]
    for q in 0..3 { unpack_packets j[0] <- w[q] }
  }
}
rank r in 1..4 {
  let others = 1..4 except r
  channel a = memory(0) to ra[r]
  channel c[p in others] = memory(p)
  buffer s[1] packets: LL16, copies: 2
  buffer t[1] packets: LL16, copies: 2
  tb 0 {
    for p in others { read_put_packets c[p].t[0] <- s[0] part: [r - 1, 3] }
    unpack_packets output[0] <- s[0] part: [r - 1, 3]
    for p in others { unpack_packets output[0] <- t[0] part: [p - 1, 3] }
    sync
    put_packets a.w[r - 1] <- output[0]
  }
}
)";
  check_right(text);
  std::string one_copy = text;
  for (size_t at = 0; (at = one_copy.find("copies: 2", at)) != std::string::npos;) {
    one_copy.replace(at, 9, "copies: 1");
  }
  CHECK(verdict(one_copy).starts_with("race: race at t[0] of rank "));
}

TEST_CASE("the sum of a rank's node, and of all") {
  // The first is a result, and a term of the second.
  const std::string text = R"(program t
collective custom(ranks: 4, input: 1, output: 2, inplace: false, even: true)
ensure output[0] at q = reduce(input[0] at p for p in [q, q ^ 1]) for q in 0..4
ensure output[1] at q = reduce(input[0] at p for p in 0..4) for q in 0..4
rank r in 0..4 {
  buffer box[2]
  channel mate = memory(r ^ 1)
  channel node = memory(r ^ 2)
  tb 0 {
    put mate.box[0] <- input
    sync ; signal mate ; wait mate ; sync
    reduce output[0] <- box[0], input
    sync
    put node.box[1] <- output[0]
    sync ; signal node ; wait node ; sync
    reduce output[1] <- output[0], box[1]
    sync
    signal mate ; signal node
    wait mate ; wait node
  }
}
)";
  check_right(text);
}

/// Each rank sends on what it has, twice as much in every step.
std::string bruck(const std::string& packets, uint32_t copies) {
  return "program t\nparam R = 8\ncollective allgather(ranks: R)\nselect dtypes: [f32]\n"
         "rank r in 0..R {\n  buffer box[R] packets: " +
         packets + ", copies: " + std::to_string(copies) + R"(
  channel down[k in 0..3] = memory((r - (1 << k)) % R) to up[k]
  channel up[k in 0..3] = memory((r + (1 << k)) % R) to down[k]
  tb 0 {
    copy output[r] <- input
    for k in 0..3 {
      for i in 0..(1 << k) {
        let c = (r + i) % R
        if i == 0 { put_packets down[k].box[c] <- input } else {
          put_packets down[k].box[c] <- output[c]
        }
      }
      for i in 0..(1 << k) {
        let c = (r + (1 << k) + i) % R
        unpack_packets output[c] <- box[c]
      }
    }
  }
}
)";
}

/// A block puts where its port has put in the call before; that one is over, as the other rank has
/// waited for it and is in this call.
TEST_CASE("a put after a port's put of the call before, after a relaxed signal") {
  const std::string text = R"(program t
collective custom(ranks: 2, input: 1, output: 1, inplace: false)
ensure output[0] at 1 = input[0] at 0
rank 0 {
  channel c = memory(1) to c
  channel n = port(1) to n
  tb 0 {
    wait c relaxed ; sync
    put c.s[0] <- input[0]
    sync
    put n.s[0] <- input[0] ; signal n ; flush n
  }
}
rank 1 {
  buffer s[1]
  channel c = memory(0) to c
  channel n = port(0) to n
  tb 0 { signal c relaxed ; wait n ; sync ; copy output[0] <- s[0] }
}
)";
  check_right(text);
  const Program program = as_written(text);
  for (const bool reduced : {false, true}) {
    const Exploration found = explore(program, {.calls = 3, .same_bits = true, .reduced = reduced});
    CHECK(found.reason == "");
  }
}

/// Rank 1 has room for the units, and leaves them to the switch.
TEST_CASE("units that another rank's switch alone fills") {
  const std::string text = R"(program t
collective broadcast(ranks: 2, root: 0, inplace: false)
rank r in 0..2 {
  buffer box[1] units: 3
  channel sw = switch(0..2)
  channel c = memory(1 - r)
  tb 0 { pipeline unit: 16 {
    if r == 0 {
      wait c
      sync
      switch_broadcast sw.box[0] <- input[0]
      sync
      copy output[0] <- box[0]
      put c.output[0] <- box[0]
      sync
      signal c
    } else { signal c ; wait c ; sync }
  } }
}
)";
  check_right(text);
}

TEST_CASE("a gather in doubling steps, by packets in two copies") {
  for (const std::string packets : {"LL16", "sentinel"}) {
    INFO(packets);
    check_right(bruck(packets, 2));
    CHECK(verdict(bruck(packets, 1)) != "proved");
  }
}

}  // namespace
}  // namespace mscclc::random_programs
