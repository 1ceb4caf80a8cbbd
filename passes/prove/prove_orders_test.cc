// Which contracts about the bits of sums (docs/bits.md) the prover finds that a plan keeps.
#include "passes/prove/prove_test_text.h"

namespace mscclc {
namespace {

using testing::as_written;

/// Three or four ranks that send everyone their inputs, and add up what is in x in some way.
std::string all_to_all_sum(uint32_t ranks, const std::string& sums, const std::string& order = "") {
  const std::string n = std::to_string(ranks);
  return "program t\ncollective allreduce(ranks: " + n + order + ")\nrank r in 0.." + n +
         " {\n  let others = 0.." + n + " except r\n  buffer s[others] packets: LL16, copies: 2\n" +
         "  buffer x[" + n + "]\n  buffer y[2]\n  channel ch[p in others] = memory(p)\n  tb 0 {\n" +
         "    for p in others { put_packets ch[p].s[r] <- input }\n    copy x[r] <- input\n" +
         "    for p in others { unpack_packets x[p] <- s[p] }\n    sync\n" + sums +
         "\n    sync\n  }\n}\n";
}

Proof proof_of_sum(const std::string& text, uint64_t symmetry_from = 500) {
  Diagnostics diagnostics;
  const Proof proof = prove(as_written(text), diagnostics, {.symmetry_from = symmetry_from});
  INFO(render_text(diagnostics, Sources{}, 10));
  CHECK(proof.proved);
  return proof;
}

SumOrders orders(uint32_t ranks, const std::string& sums) {
  const std::string text = all_to_all_sum(ranks, sums);
  const SumOrders found = proof_of_sum(text).orders;
  CHECK(proof_of_sum(text, 0).orders == found);  // by ranks that stand for all
  return found;
}

constexpr SumOrders kAny{}, kReplicated{.replicated = true},
    kRanks{.replicated = true, .ranks = true}, kTree{.replicated = true, .tree = true},
    kExact{.replicated = true, .exact = true};

TEST_CASE("sums in the order of the ranks") {
  CHECK(orders(4, "reduce output <- x[0], x[1], x[2], x[3]") == kRanks);
  CHECK(orders(4, "reduce output <- x[1], x[0], x[2], x[3]") == kRanks);  // either side first
  CHECK(orders(4, "reduce output <- x[0], x[1], x[3], x[2]") == kReplicated);
  CHECK(orders(4, "reduce output <- x[3], x[2], x[1], x[0]") == kReplicated);
  CHECK(orders(4, "reduce output <- x[r], x[p] for p in others") == kAny);
}

std::string expressions(const std::string& text, uint64_t symmetry_from = 500) {
  Diagnostics diagnostics;
  SumExpressions sums;
  CHECK(
      prove(as_written(text), diagnostics, {.symmetry_from = symmetry_from, .sums = &sums}).proved);
  return sums.text("");
}

/// Of ranks that send everyone their inputs.
std::string expressions_of_sum(uint32_t ranks, const std::string& sums) {
  const std::string text = all_to_all_sum(ranks, sums);
  const std::string found = expressions(text);
  CHECK(expressions(text, 0) == found);  // by ranks that stand for all
  return found;
}

TEST_CASE("what sums are, as expressions") {
  const std::string left = "reduce output <- x[0], x[1], x[2], x[3]";
  CHECK(expressions_of_sum(4, left) == "x0 + x1 + x2 + x3\n");
  CHECK(expressions_of_sum(4, "reduce output <- x[1], x[0], x[2], x[3]") == "x0 + x1 + x2 + x3\n");
  CHECK(expressions_of_sum(4, left + " tree") == "x0 + x1 + (x2 + x3)\n");
  CHECK(expressions_of_sum(4, left + " exact") == "exact(x0, x1, x2, x3)\n");
  CHECK(expressions_of_sum(4, "reduce output <- x[3], x[1], x[0], x[2] exact") ==
        "exact(x0, x1, x2, x3)\n");
  const std::string parts = "reduce y[0] <- x[2], x[1]\nsync\nreduce output <- x[0], y[0]";
  CHECK(expressions_of_sum(3, parts) == "[x1 + x2] + x0\n");
}

TEST_CASE("which ranks have which expression is part of what is compared") {
  const auto forms = [](const std::string& order) {
    const std::string found = expressions_of_sum(3, "reduce output <- " + order);
    CHECK(
        found.starts_with("x0 + x1 + x2, for 2/3 of the output\n"
                          "x0 + x2 + x1, for 1/3 of the output\nwhich where: #"));
    return found;
  };
  // Those of ranks 0 and 1 are the same, as either side may come first.
  const std::string own = forms("x[r], x[p] for p in others");
  CHECK(forms("x[0], x[1 + r / 2], x[2 - r / 2]") == own);
  CHECK(forms("x[0], x[1 + r % 2], x[2 - r % 2]") != own);
}

TEST_CASE("sums of a reduce-scatter are shown as its ranks see them") {
  const auto sums = [](const std::string& added) {
    return expressions(
        "program t\ncollective reducescatter(ranks: 4)\nrank r in 0..4 {\n"
        "  let others = 0..4 except r\n  buffer s[others] packets: LL16, copies: 2\n"
        "  buffer x[4]\n  channel ch[p in others] = memory(p)\n  tb 0 {\n"
        "    for p in others { put_packets ch[p].s[r] <- input[p] }\n    copy x[r] <- input[r]\n"
        "    for p in others { unpack_packets x[p] <- s[p] }\n    sync\n    reduce output <- " +
        added + "\n    sync\n  }\n}\n");
  };
  CHECK(sums("x[(r + p) % 4] for p in 0..4") ==
        "x(o) + x(o+1) + x(o+2) + x(o+3), o: the rank that gets it\n");
  CHECK(sums("x[p] for p in 0..4") == "x0 + x1 + x2 + x3\n");
  CHECK(sums("x[r], x[p] for p in others")
            .starts_with("x0 + x1 + x2 + x3, for 1/2 of the output\n"
                         "x0 + x2 + x1 + x3, for 1/4 of the output\n"
                         "x0 + x3 + x1 + x2, for 1/4 of the output\nwhich where: #"));
}

TEST_CASE("long expressions end in a hash of all of it") {
  const std::string left = expressions_of_sum(48, "reduce output <- x[p] for p in 0..48");
  const std::string right = expressions_of_sum(48, "reduce output <- x[47 - p] for p in 0..48");
  const std::string swapped =
      expressions_of_sum(48, "reduce output <- x[p] for p in 0..46, x[47], x[46]");
  CHECK(left.starts_with("x0 + x1 + x2 + x3 + "));
  CHECK(left.find(" ... #") != std::string::npos);
  CHECK(left != right);
  CHECK(left != swapped);
  CHECK(left.substr(0, left.find('#')) == swapped.substr(0, swapped.find('#')));
}

TEST_CASE("sums along the tree") {
  const std::string halves = "reduce y[0] <- x[0], x[1]\nreduce y[1] <- x[2], x[3]\nsync\n";
  CHECK(orders(4, halves + "reduce output <- y[0], y[1]") == kTree);
  CHECK(orders(4, halves + "reduce output <- y[1], y[0]") == kTree);
  const std::string crossed = "reduce y[0] <- x[0], x[2]\nreduce y[1] <- x[1], x[3]\nsync\n";
  CHECK(orders(4, crossed + "reduce output <- y[0], y[1]") == kReplicated);
  CHECK(orders(4, "reduce output <- x[0], x[1], x[2], x[3] tree") == kTree);
  CHECK(orders(4, "reduce output <- x[3], x[2], x[1], x[0] tree") == kTree);
  CHECK(orders(4, "reduce output <- x[0], x[2], x[1], x[3] tree") == kReplicated);
  const SumOrders six = orders(6, "reduce output <- x[p] for p in 0..6 tree");
  CHECK(six == kTree);
  // Of three ranks the tree is the sum from the left.
  const SumOrders both{.replicated = true, .ranks = true, .tree = true};
  CHECK(orders(3, "reduce output <- x[0], x[1], x[2]") == both);
}

TEST_CASE("exact sums are those of all inputs at once, in any order") {
  CHECK(orders(4, "reduce output <- x[0], x[1], x[2], x[3] exact") == kExact);
  CHECK(orders(4, "reduce output <- x[2], x[0], x[3], x[1] exact") == kExact);
  CHECK(orders(4, "reduce output <- x[r], x[p] for p in others exact") == kExact);
  CHECK(orders(3, "copy y[0] <- x[1]\nsync\nreduce output <- x[0], y[0], x[2] exact") == kExact);
  // What has been rounded on the way is no exact sum, and neither is a part of one.
  const std::string pair = "reduce y[0] <- x[0], x[1]\nsync\n";
  CHECK(orders(4, pair + "reduce output <- y[0], x[2], x[3] exact") == kReplicated);
  const std::string three = "reduce y[0] <- x[0], x[1], x[2] exact\nsync\n";
  CHECK(orders(4, three + "reduce output <- y[0], x[3]") == kReplicated);
  CHECK(orders(4, three + "reduce output <- y[0], x[3] exact") == kReplicated);
  CHECK(orders(5, three + "reduce output <- y[0], x[3], x[4] exact") == kReplicated);
  // Of four, an exact sum on one rank, and one in turn on the others.
  const std::string mixed =
      "if r == 0 {\nreduce output <- x[p] for p in 0..4 exact\n} else {\n"
      "reduce output <- x[p] for p in 0..4\n}";
  CHECK(orders(4, mixed) == kAny);
  // Of two, every sum is in every order.
  const SumOrders all{.replicated = true, .ranks = true, .tree = true, .exact = true};
  CHECK(orders(2, "reduce output <- x[0], x[1]") == all);
  CHECK(orders(2, "reduce output <- x[1], x[0] exact") == all);
}

TEST_CASE("an exact sum that adds an input twice is wrong") {
  CHECK(
      testing::verdict(as_written(all_to_all_sum(3, "reduce output <- x[0], x[1], x[1] exact"))) ==
      "wrong-result: output[0] of rank 0 does not hold what the collective promises at the end of "
      "a "
      "call");
}

TEST_CASE("where a sum is rounded is part of its bits, and not of its order") {
  const std::string parts = "reduce y[0] <- x[0], x[1]\nsync\nreduce output <- y[0], x[2]";
  const Proof each = proof_of_sum(all_to_all_sum(3, parts));
  CHECK(each.orders.ranks);
  CHECK(each.rounding == Rounding::each_op);
  const std::string mixed =
      "if r == 0 {\n" + parts + "\n} else { reduce output <- x[0], x[1], x[2] }";
  CHECK_FALSE(orders(3, mixed).replicated);
}

TEST_CASE("contracts with an order of ranks are about one input of each") {
  const std::string one =
      "program t\ncollective custom(ranks: 1, input: 2, output: 1, inplace: false, even: true)\n"
      "ensure output[0] at 0 = reduce(input[0] at 0, input[1] at 0)\n"
      "rank 0 {\n  tb 0 { reduce output[0] <- input[0], input[1] }\n}\n";
  CHECK(proof_of_sum(one).orders == kReplicated);
}

TEST_CASE("a program keeps the order that it promises") {
  const auto verdict = [](const std::string& order, const std::string& sums) {
    return testing::verdict(as_written(all_to_all_sum(4, sums, ", order: " + order)));
  };
  const std::string left = "reduce output <- x[0], x[1], x[2], x[3]";
  const std::string other = "reduce output <- x[0], x[1], x[3], x[2]";
  const std::string own = "reduce output <- x[r], x[p] for p in others";
  CHECK(verdict("any", own) == "proved");
  CHECK(verdict("replicated", other) == "proved");
  CHECK(verdict("ranks", left) == "proved");
  CHECK(verdict("replicated", own) ==
        "sum-order: output[0] of rank 3 does not keep 'order: replicated'");
  CHECK(verdict("ranks", other) == "sum-order: output[0] of rank 0 does not keep 'order: ranks'");
  CHECK(verdict("tree", left) == "sum-order: output[0] of rank 0 does not keep 'order: tree'");
  CHECK(verdict("exact", left) == "sum-order: output[0] of rank 0 does not keep 'order: exact'");
  CHECK(verdict("exact", own + " exact") == "proved");
  // Nothing is rounded.
  CHECK(verdict("ranks", own + " op: max") == "proved");
  CHECK(verdict("exact", own + " op: min") == "proved");
  CHECK(verdict("exact", own + " op: prod").starts_with("sum-order"));
}

TEST_CASE("one input that ranks are to have alike goes through no sentinel packets") {
  const auto moves = [](const std::string& order, const std::string& format) {
    return "program t\ncollective custom(ranks: 2, input: 1, output: 1" + order +
           ")\nensure output[0] at q = input[0] at 0 for q in 0..2\nselect dtypes: [f32]\n"
           "rank r in 0..2 {\n  buffer a[1] packets: " +
           format +
           ", copies: 2\n  channel c = memory(1 - r)\n  tb 0 {\n"
           "    signal c relaxed\n    wait c relaxed\n    sync\n"
           "    if r == 0 { put_packets c.a <- input ; copy output <- input }\n"
           "    if r == 1 { unpack_packets output <- a }\n  }\n}\n";
  };
  const auto proved = [&](const std::string& order, const std::string& format) {
    return testing::verdict(as_written(moves(order, format)));
  };
  // Where any order will do, it is right, but calls by name do not get it.
  CHECK(proof_of_sum(moves("", "sentinel")).orders == kAny);
  CHECK(proof_of_sum(moves("", "LL16")).orders ==
        SumOrders{.replicated = true, .ranks = true, .tree = true, .exact = true});
  Diagnostics diagnostics;
  (void)prove(as_written(moves(", order: replicated", "sentinel")), diagnostics);
  CHECK(render_text(diagnostics, Sources{}, 10).find("sentinel packets, which have no -0.0") !=
        std::string::npos);
  CHECK(proved(", order: replicated", "LL16") == "proved");
  CHECK(proved(", order: replicated", "sentinel").starts_with("wrong-result: output[0] of rank 1"));
}

TEST_CASE("a sum in another order comes with the remedy for what is promised") {
  const auto said = [](const std::string& order, const std::string& sums, const char* text) {
    Diagnostics diagnostics;
    (void)prove(as_written(all_to_all_sum(4, sums, ", order: " + order)), diagnostics);
    return render_text(diagnostics, Sources{}, 10).find(text) != std::string::npos;
  };
  CHECK(said("tree", "reduce output <- x[0], x[1], x[2], x[3]",
             "the operands are in the order of the ranks: give the op the option 'tree'"));
  CHECK(said("tree", "reduce output <- x[0], x[2], x[1], x[3]",
             "in the order of the ranks, and the option 'tree'"));
  CHECK(said("replicated", "reduce output <- x[r], x[p] for p in others",
             "in the same order on all ranks"));
  for (const std::string option : {" tree", " exact"}) {
    CHECK(said("ranks", "reduce output <- x[0], x[1], x[2], x[3]" + option,
               "leave out the options 'tree' and 'exact'"));
  }
}

TEST_CASE("how a switch adds up is not shown as a sum") {
  Diagnostics diagnostics;
  (void)prove(as_written("program t\ncollective allreduce(ranks: 3, order: ranks)\n"
                         "rank r in 0..3 {\n  let others = 0..3 except r\n  buffer x[1]\n"
                         "  channel sw = switch(0..3)\n  channel a[p in others] = memory(p)\n"
                         "  tb 0 {\n    copy x <- input\n    sync\n"
                         "    signal a[p] for p in others\n    wait a[p] for p in others\n"
                         "    switch_reduce output <- sw.x\n    sync\n"
                         "    signal a[p] for p in others\n    wait a[p] for p in others\n"
                         "  }\n}\n"),
              diagnostics);
  const std::string text = render_text(diagnostics, Sources{}, 10);
  INFO(text);
  CHECK(text.find("by a switch, which has an order of its own") != std::string::npos);
  CHECK(text.find("...,") == std::string::npos);
}

TEST_CASE("a sum in another order is shown as it is made") {
  Diagnostics diagnostics;
  (void)prove(
      as_written(all_to_all_sum(3, "reduce y[0] <- x[2], x[1]\nsync\nreduce output <- x[0], y[0]",
                                ", order: ranks")),
      diagnostics);
  const std::string text = render_text(diagnostics, Sources{}, 10);
  CHECK(text.find("it is x0 + [x2 + x1], where xr is what rank r contributes, and sums in brackets "
                  "are rounded\n") != std::string::npos);
}

TEST_CASE("an exact sum is shown as such") {
  Diagnostics diagnostics;
  (void)prove(as_written(all_to_all_sum(
                  4, "reduce y[0] <- x[2], x[1], x[3] exact\nsync\nreduce output <- x[0], y[0]",
                  ", order: exact")),
              diagnostics);
  const std::string text = render_text(diagnostics, Sources{}, 10);
  CHECK(text.find(
            "give one op the contributions of all ranks, as they are, and the option 'exact'") !=
        std::string::npos);
  CHECK(
      text.find("it is x0 + [exact(x2, x1, x3)], where xr is what rank r contributes, and sums in "
                "brackets are rounded\n") != std::string::npos);
}

TEST_CASE("what was moved as sentinel packets has other bits than what was not") {
  // Ranks 0 and 2 put the input of rank 0 into one slot of rank 1, where the same may come twice. A
  // slot of sentinels has lost the -0.0 of what rank 2 hands on.
  const auto echo = [](const std::string& format) {
    return testing::verdict(as_written(
        "program t\ncollective broadcast(ranks: 3, root: 0)\nselect dtypes: [f32]\n"
        "rank 0 {\n  channel a = memory(1)\n  channel b = memory(2)\n  tb 0 {\n"
        "    put_packets a.box <- input\n    put_packets b.got <- input\n    copy output <- input\n"
        "    sync\n    wait a\n    wait b\n  }\n}\n"
        "rank 1 {\n  buffer box[1] packets: LL16, copies: 2\n  channel a = memory(0)\n"
        "  channel c = memory(2)\n  tb 0 {\n    unpack_packets output <- box\n    sync\n"
        "    signal a\n    signal c\n  }\n}\n"
        "rank 2 {\n  buffer got[1] packets: " +
        format +
        ", copies: 2\n  channel b = memory(0)\n  channel c = memory(1)\n  tb 0 {\n"
        "    unpack_packets output <- got\n    sync\n    put_packets c.box <- output\n    sync\n"
        "    signal b\n    wait c\n  }\n}\n"));
  };
  CHECK(echo("LL16") == "proved");
  CHECK(echo("sentinel").starts_with("slot-twice"));
}

}  // namespace
}  // namespace mscclc
