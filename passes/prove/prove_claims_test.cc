// What a proof says beside that a plan is right, and may only say if it is true.
#include "passes/prove/prove_test_text.h"

namespace mscclc {
namespace {

Proof proof_with(const std::string& text) {
  Diagnostics diagnostics;
  const Proof proof = prove(testing::as_written(text), diagnostics);
  CHECK(proof.proved);
  return proof;
}

TEST_CASE("the input is kept where nothing is stored into it") {
  const auto kept = [](const std::string& more) {
    return proof_with(
               "ir 1\ncollective custom(ranks: 1, input: 1, output: 1, inplace: false)\n"
               "ensure output[0] at 0 = input[0] at 0\nlaunch split: true, foreign: true\n"
               "rank 0 {\n  buffer s[1]\n  tb 0 {\n    "
               "copy output[0] <- input[0]\n    sync\n" +
               more + "  }\n}\n")
        .keeps_input;
  };
  CHECK(kept(""));
  CHECK(kept("    copy s[0] <- input[0]\n"));
  CHECK_FALSE(kept("    copy input[0] <- s[0]\n"));
  // What holds at the end what it held may have held something else.
  CHECK_FALSE(kept("    copy s[0] <- input[0]\n    sync\n    copy input[0] <- s[0]\n"));
}

TEST_CASE("sums are rounded once where every one of them is complete") {
  const auto rounding = [](const std::string& sums) {
    return proof_with(
               "program t\ncollective allreduce(ranks: 3)\nrank r in 0..3 {\n"
               "  let others = 0..3 except r\n  buffer s[3] packets: LL16, copies: 2\n"
               "  buffer x[1]\n  channel ch[p in others] = memory(p)\n  tb 0 {\n"
               "    for p in others { put_packets ch[p].s[r] <- input }\n" +
               sums + "  }\n}\n")
        .rounding;
  };
  const std::string a = "s[(r + 1) % 3]", b = "s[(r + 2) % 3]";
  CHECK(rounding("reduce_packets output <- input, " + a + ", " + b + "\n") == Rounding::once);
  CHECK(rounding("reduce_packets x <- input, " + a + "\nsync\nreduce_packets output <- x, " + b +
                 "\n") == Rounding::each_op);
}

TEST_CASE("a plan that calls a partial sum complete is rounded on the way all the same") {
  Program program = testing::as_written(
      "program t\ncollective allreduce(ranks: 3)\nselect ops: [sum]\nrank r in 0..3 {\n"
      "  let others = 0..3 except r\n  buffer s[3] packets: LL16, copies: 2\n  buffer x[3]\n"
      "  buffer t[1]\n  channel ch[p in others] = memory(p)\n  tb 0 {\n"
      "    for p in others { put_packets ch[p].s[r] <- input }\n    copy x[r] <- input\n"
      "    for p in others { unpack_packets x[p] <- s[p] }\n    sync\n"
      "    reduce t[0] <- x[0], x[1] op: sum\n    sync\n    reduce output <- t[0], x[2] op: sum\n"
      "  }\n}\n");
  for (Rank& rank : program.ranks) {
    for (Op& op : rank.ops) op.complete |= info(op.kind).has(kReduces);
  }
  for (const uint64_t symmetry_from : {uint64_t{0}, uint64_t{1000}}) {
    Diagnostics diagnostics;
    const Proof proof = prove(program, diagnostics, {.symmetry_from = symmetry_from});
    CHECK(proof.proved);
    CHECK(proof.rounding == Rounding::each_op);
  }
}

TEST_CASE(
    "packets say which ranks their sender has heard of in calls before, and not in this one") {
  // A ring hands on what has come in this call: rank 0 has word of rank 1 by way of rank 2.
  const Proof ring = proof_with(testing::packet_ring("3", "LL16", 2));
  CHECK(ring.between_calls == BetweenCalls::copies);
}

TEST_CASE("a sum by sentinel packets is the one by plain chunks") {
  // Both ranks add up what has come through sentinel packets, in one order.
  const auto sum = [](const std::string& at_first) {
    return proof_with(
        "program t\ncollective allreduce(ranks: 2)\nselect dtypes: [f32]\nrank r in 0..2 {\n"
        "  buffer s[2] packets: sentinel, copies: 2\n  buffer x[2]\n  channel ch = memory(1 - r)\n"
        "  tb 0 {\n    copy_packets s[r] <- input\n    put_packets ch.s[r] <- input\n    sync\n"
        "    if r == 0 {\n" +
        at_first +
        "    } else {\n      unpack_packets x[0] <- s[0]\n      unpack_packets x[1] <- s[1]\n"
        "      sync\n      reduce output <- x[0], x[1]\n    }\n    sync\n    signal ch\n"
        "    wait ch\n    sync\n  }\n}\n");
  };
  CHECK(sum("unpack_packets x[0] <- s[0]\nunpack_packets x[1] <- s[1]\nsync\n"
            "reduce output <- x[0], x[1]\n")
            .orders.replicated);
  CHECK(sum("unpack_packets x[0] <- s[0]\nsync\nreduce_packets output <- x[0], s[1]\n")
            .orders.replicated);
}

TEST_CASE("pieces that are added up in several orders are a sum of their own") {
  const std::string left = "reduce output[0] <- x[0], x[1], x[2]", part = " part: ";
  const std::string right = "reduce output[0] <- x[2], x[1], x[0]";
  const auto sums = [](const std::string& halves) {
    return proof_with(
        "program t\ncollective allreduce(ranks: 3)\nrank r in 0..3 {\n"
        "  let others = 0..3 except r\n  buffer s[others] packets: LL16, copies: 2\n"
        "  buffer x[3]\n  channel ch[p in others] = memory(p)\n  tb 0 {\n"
        "    for p in others { put_packets ch[p].s[r] <- input }\n    copy x[r] <- input\n"
        "    for p in others { unpack_packets x[p] <- s[p] }\n    sync\n    " +
        halves + "\n    sync\n  }\n}\n");
  };
  CHECK(sums(left + part + "[0, 2]\n" + left + part + "[1, 2]").orders.replicated);
  const std::string mixed = left + part + "[0, 2]\n" + right + part + "[1, 2]\n";
  const std::string turned = right + part + "[0, 2]\n" + left + part + "[1, 2]\n";
  CHECK(sums(mixed).orders == SumOrders{.replicated = true});
  CHECK_FALSE(sums("if r == 0 {\n" + mixed + "} else {\n" + turned + "}").orders.replicated);
}

TEST_CASE("pieces of other divisions are other sums, though added up in the same orders") {
  // Rank 0 cuts each chunk in halves, the others cut both chunks together.
  const auto sums = [](const std::string& at_first) {
    const std::string all = "s[0], s[1], s[2] part: [0, 2]\n",
                      back = "s[2], s[1], s[0] part: [1, 2]\n";
    return proof_with(
        "program t\ncollective allreduce(ranks: 3, chunks: 2)\nrank r in 0..3 {\n"
        "  let others = 0..3 except r\n  buffer s[3, 2] copies: 2\n"
        "  channel ch[p in others] = memory(p)\n  tb 0 {\n    copy s[r] <- input\n"
        "    for p in others { put ch[p].s[r] <- input }\n    sync\n"
        "    for p in others { signal ch[p] }\n    for p in others { wait ch[p] }\n    sync\n"
        "    if r == 0 {\n" +
        at_first + "    } else {\n      reduce output <- " + all + "      reduce output <- " +
        back +
        "    }\n    sync\n    for p in others { signal ch[p] }\n"
        "    for p in others { wait ch[p] }\n  }\n}\n");
  };
  CHECK(sums("reduce output <- s[0], s[1], s[2] part: [0, 2]\n"
             "reduce output <- s[2], s[1], s[0] part: [1, 2]\n")
            .orders.replicated);
  CHECK_FALSE(sums("for c in 0..2 {\n"
                   "  reduce output[c] <- s[0, c], s[1, c], s[2, c] part: [0, 2]\n"
                   "  reduce output[c] <- s[2, c], s[1, c], s[0, c] part: [1, 2]\n}\n")
                  .orders.replicated);
}

}  // namespace
}  // namespace mscclc
