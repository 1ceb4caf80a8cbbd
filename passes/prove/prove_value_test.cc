// What must come out: values, placements, sizes, balance, meeting, and the attributes of a proof.
#include "passes/prove/prove_test_text.h"

namespace mscclc {
namespace {

using testing::as_written;
using testing::errors;
using testing::exchange;
using testing::kEnter;
using testing::verdict;

Proof proof_of(const std::string& text) {
  Diagnostics diagnostics;
  return prove(as_written(text), diagnostics);
}

TEST_CASE("every output chunk holds what is promised") {
  const auto chunks = [](const std::string& to) {
    return exchange("tb 0 {\n" + kEnter +
                        "put up.output[0] <- input[0]\nput up.output[1] <- input[" + to +
                        "]\nsync\nsignal up\nwait up\n}",
                    "", "sendrecv(ranks: 2, chunks: 2, shift: 1, even: true)");
  };
  CHECK(verdict(chunks("1")) == "proved");
  CHECK(verdict(exchange("tb 0 {\n" + kEnter + R"(
      put up.s[0] <- input[0]
      put up.output[1] <- input[1]
      sync
      signal up
      wait up
      sync
      copy output[0] <- input[0]
      sync
      signal up
      wait up
    })",
                         "", "sendrecv(ranks: 2, chunks: 2, shift: 1)")) ==
        "wrong-result: output[0] of rank 0 does not hold what the collective promises at the end "
        "of a call");
}

TEST_CASE("a sum holds each contribution once") {
  const auto add = [](const std::string& sources) {
    return exchange(
        "tb 0 {\n" + kEnter + "read_reduce output <- " + sources + "\nsync\nsignal up\nwait up\n}",
        "", "allreduce(ranks: 2, inplace: false)");
  };
  CHECK(verdict(add("input, up.input")) == "proved");
  CHECK(verdict(add("input, up.input, up.input")).starts_with("wrong-result: "));
}

TEST_CASE("a wrong sum says what it lacks and has too often, and who wrote it") {
  const auto add = [](const std::string& op, const std::string& more = "") {
    const std::string text = errors(exchange("tb 0 {\n" + kEnter + "copy s[3] <- s[0]\nsync\n" +
                                                 op + "\nsync\n" + more + "signal up\nwait up\n}",
                                             "", "allreduce(ranks: 2, inplace: false)"));
    const size_t from = text.find("- promised"), to = text.find("- the same holds");
    CHECK(text.starts_with(
        "\n14: output[0] of rank 0 does not hold what the collective promises at the end of a "
        "call\n- when r = 0\n- in '"));
    CHECK(text.find("(rank 0, tb 0)\n- this op wrote it last\n") != std::string::npos);
    CHECK(text.ends_with("- the same holds for 1 more: output[0] of rank 1\n"));
    return text.substr(from, to - from);
  };
  const std::string promised =
      "- promised is the reduction of input[0] of rank 0, input[0] of rank 1\n";
  CHECK(add("read_reduce output <- input, up.input, up.input") ==
        promised + "- input[0] of rank 1 is in it twice\n");
  CHECK(add("reduce output <- input, input, input") ==
        promised + "- input[0] of rank 1 is missing\n- input[0] of rank 0 is in it 3 times\n");
  CHECK(add("reduce output <- input, s[1]") ==
        promised +
            "- the sum includes what was in s[1] of rank 0 before anything was written there: "
            "'reduce "
            "output[0] <- input[0], s[1]' reads it (rank 0, tb 0)\n"
            "- input[0] of rank 1 is missing\n");
  CHECK(add("reduce output <- input, s[3]", "copy s[0] <- input\nsync\n") ==
        promised +
            "- input[0] of rank 1 is missing\n"
            "- input[0] of rank 0 of an earlier call is in it\n");
}

TEST_CASE("a result that a plan divides too early or not at all says so") {
  Program program = as_written(exchange(
      "tb 0 {\n" + kEnter + "read_reduce output <- input, up.input\nsync\nsignal up\nwait up\n}",
      "", "allreduce(ranks: 2, inplace: false)"));
  for (Rank& rank : program.ranks) {
    for (Op& op : rank.ops) op.complete = false;
  }
  CHECK(errors(program).find("- 'avg' would not divide it: the op that adds it up is not marked "
                             "complete\n") != std::string::npos);
}

TEST_CASE("halves of a chunk may be added up in different orders") {
  const auto halves = [](const std::string& second) {
    return as_written(
        exchange("group 0..2 { put up.s[0] <- input }\n"
                 "tb 0 { barrier 0..2 ; signal up ; wait up ; barrier 0..2 ; reduce output <- "
                 "input, s[0] part: [0, 2]\n"
                 "  barrier 0..2 ; signal up ; wait up }\n"
                 "tb 1 { barrier 0..2 ; barrier 0..2 ; reduce output <- " +
                     second + " part: [1, 2] ; barrier 0..2 }",
                 "", "allreduce(ranks: 2, inplace: false)"));
  };
  Diagnostics diagnostics;
  CHECK(verdict(halves("input, s[0]")) == "proved");
  CHECK(verdict(halves("s[0], input")) == "proved");
  CHECK(prove(halves("s[0], input"), diagnostics).orders.replicated);
}

TEST_CASE("avg divides once, where the sum is complete") {
  Program program = as_written(exchange(
      "tb 0 {\n" + kEnter + "read_reduce output <- input, up.input\nsync\nsignal up\nwait up\n}",
      "", "allreduce(ranks: 2, inplace: false)"));
  CHECK(verdict(program) == "proved");
  for (Rank& rank : program.ranks) {
    for (Op& op : rank.ops) op.complete = false;
  }
  CHECK(verdict(program).starts_with("wrong-result: "));
}

/// Three ranks in a chain: what each does, of which ch[r + 1] informs the next.
std::string chain(const std::string& ensure, const std::string& body) {
  return "program t\ncollective custom(ranks: 3, input: 1, output: 1, inplace: false)\n" + ensure +
         "\nrank r in 0..3 {\n  buffer box[1]\n"
         "  channel ch[p in 0..3 except r] = memory(p) to ch[r]\n"
         "  tb 0 {\n    if r > 0 { signal ch[r - 1] relaxed }\n" +
         body + "\n  }\n}\n";
}
/// Waits until the next rank is in the call, and puts `sent` there.
std::string hand_on(const std::string& sent) {
  return "\n    if r < 2 { sync ; wait ch[r + 1] relaxed ; sync ; put ch[r + 1].box[0] <- " + sent +
         " ; sync ; signal ch[r + 1] }\n";
}

TEST_CASE("a promised sum may be part of another") {
  const std::string inclusive =
      "    if r == 0 { copy output[0] <- input[0] } else {\n      wait ch[r - 1] ; sync\n"
      "      reduce output[0] <- box[0], input[0]\n    }" +
      hand_on("output[0]");
  const auto promise = [](const std::string& terms, const std::string& ranks) {
    return "ensure output[0] at q = reduce(input[0] at p for p in " + terms + ") for q in " + ranks;
  };
  CHECK(verdict(chain(promise("0..(q + 1)", "0..3"), inclusive)) == "proved");
  CHECK(verdict(chain(promise("0..(q + 1)", "1..3"), inclusive)) == "proved");
  CHECK(verdict(chain(promise("0..2", "2..3"), inclusive)).starts_with("wrong-result: "));
}

TEST_CASE("avg must divide by one number") {
  const std::string text = chain(
      "ensure output[0] at q = reduce(input[0] at p for p in 0..(q + 1)) for q in 1..3",
      "    if r > 0 { wait ch[r - 1] ; sync ; reduce output[0] <- box[0], input[0] op: avg }" +
          hand_on("input[0]"));
  CHECK(verdict(text) ==
        "avg-contributions: 'avg' needs outputs that are sums of equally many inputs");
}

TEST_CASE("in place is a placement of its own") {
  const auto sum = [](const std::string& in_place) {
    return exchange(
        "tb 0 {\n" + kEnter + "read_reduce output <- input, up.input\nsync\nsignal up\nwait up\n}",
        "", "allreduce(ranks: 2" + in_place + ")");
  };
  CHECK(verdict(sum(", inplace: false")) == "proved");
  CHECK(verdict(sum("")) ==
        "race: race at input[0] of rank 0 in place: nothing orders two accesses");
}

TEST_CASE("a long chunk does not fit through a short one") {
  const auto route = [](const std::string& via) {
    return exchange("tb 0 {\n" + kEnter + "put up.s[0] <- input[0]\nput up.s[1] <- input[1]\n" +
                        "sync\nsignal up\nwait up\nsync\n" + via + "\nsync\n" +
                        "copy output[0] <- s[2]\ncopy output[1] <- s[1]\n" +
                        "sync\nsignal up\nwait up\n}",
                    "", "sendrecv(ranks: 2, chunks: 2, shift: 1)");
  };
  CHECK(verdict(route("copy output[0] <- s[0]\nsync\ncopy s[2] <- output[0]")) == "proved");
  CHECK(verdict(route("copy output[1] <- s[0]\nsync\ncopy s[2] <- output[1]"))
            .starts_with("wrong-result: output[0] of rank"));
}

TEST_CASE("signals and waits balance") {
  Program program = as_written(exchange("tb 0 {\n" + kEnter + R"(
      put up.output <- input
      sync
      signal up
      wait up
      signal extra
      wait extra
    })",
                                        "channel extra = memory(1 - r)"));
  CHECK(verdict(program) == "proved");
  program.ranks[0].ops.pop_back();
  CHECK(
      verdict(program) ==
      "unbalanced: in each call 'extra' of rank 0 is signalled 1 time more than it is waited for");
}

TEST_CASE("what is added very often does not vanish") {
  // 2^128 times a number is 0 modulo 2^128.
  const auto doubled = [](uint32_t times) {
    return verdict(
        "program t\ncollective allreduce(ranks: 1)\nrank 0 {\n  buffer s[1]\n  tb 0 {\n"
        "    copy s[0] <- input[0]\n    sync\n    for i in 0.." +
        std::to_string(times) +
        " { reduce s[0] <- s[0], s[0] ; sync }\n"
        "    reduce output[0] <- input[0], s[0]\n  }\n}\n");
  };
  const std::string wrong =
      "wrong-result: output[0] of rank 0 does not hold what the collective promises at the end of "
      "a call";
  for (const uint32_t times : {1, 63, 64, 65, 127, 128, 129, 200}) CHECK(doubled(times) == wrong);
}

TEST_CASE("no rank leaves a barrier before all are in") {
  CHECK(verdict(exchange("tb 0 { signal up relaxed ; wait up relaxed }", "",
                         "barrier(ranks: 2)")) == "proved");
  Program program = as_written(exchange("tb 0 { signal up ; wait up }", "", "barrier(ranks: 2)"));
  for (Rank& rank : program.ranks) rank.ops.clear();
  CHECK(verdict(program) == "not-met: rank 1 may leave the barrier before rank 0 has arrived");
}

TEST_CASE("a barrier of relaxed signals in a ring is right by control alone") {
  const auto ring = [](const std::string& rounds, const std::string& meeting) {
    return "program t\ncollective barrier(ranks: 4)\nrank r in 0..4 {\n"
           "  channel next = memory((r + 1) % 4) to prev\n"
           "  channel prev = memory((r - 1) % 4) to next\n  tb 0 {\n    for s in 0.." +
           rounds + " { signal next relaxed ; wait prev relaxed" + meeting + " }\n  }\n}\n";
  };
  CHECK(verdict(ring("3", " ; sync")) == "proved");
  CHECK(verdict(ring("2", " ; sync")).starts_with("not-met: "));
  // Another thread may signal.
  CHECK(errors(ring("3", "")).find("may leave the barrier before") != std::string::npos);
}

TEST_CASE("attributes of a proof") {
  const std::string one_way =
      "program t\ncollective broadcast(ranks: 2, root: 0)\n"
      "rank 0 {\n  channel up = memory(1)\n  tb 0 {\n    wait up relaxed\n"
      "    sync\n    put up.output <- input\n    copy output <- input\n"
      "    sync\n    signal up\n  }\n}\n"
      "rank 1 {\n  channel up = memory(0)\n"
      "  tb 0 {\n    signal up relaxed\n    wait up\n  }\n}\n";
  CHECK(verdict(one_way) == "proved");
  const Proof sent = proof_of(one_way);
  CHECK(sent.out_of_place);
  CHECK(sent.in_place);
  CHECK(sent.keeps_input);
  CHECK(sent.between_calls == BetweenCalls::meeting);
  const auto sum = [](const std::string& order) {
    return "program t\ncollective allreduce(ranks: 2)\nrank r in 0..2 {\n"
           "  buffer inbox[1] packets: LL16, copies: 2\n  channel up = memory(1 - r)\n  tb 0 {\n"
           "    put_packets up.inbox <- input\n    " +
           order + "\n  }\n}\n";
  };
  CHECK(proof_of(sum("reduce_packets output <- input, inbox")).orders ==
        SumOrders{.replicated = true, .ranks = true, .tree = true, .exact = true});
}

TEST_CASE("sums that each rank has a switch make need not be the same bits") {
  const auto sum = [](const std::string& op) {
    return proof_of(exchange("tb 0 {\ncopy x[0] <- input\nsync\nsignal up\nwait up\nsync\n" + op +
                                 "sync\nsignal up\nwait up\n}",
                             "buffer x[1]\nchannel sw = switch(0..2)", "allreduce(ranks: 2)"));
  };
  const Proof each = sum("switch_reduce output <- sw.x[0]\n");
  CHECK(each.proved);
  CHECK_FALSE(each.orders.replicated);
  const Proof by_one = proof_of(
      exchange("tb 0 {\ncopy x[0] <- input\nsync\nsignal up\nwait up\nsync\nif r == 0 "
               "{ switch_reduce_broadcast sw.output <- sw.x[0] }\nsync\nsignal up\nwait up\n}",
               "buffer x[1]\nchannel sw = switch(0..2)", "allreduce(ranks: 2)"));
  CHECK(by_one.proved);
  CHECK(by_one.orders.replicated);
}

TEST_CASE("sums have no -0.0 that sentinel packets could lose") {
  const auto sum = [](const std::string& at_root, const std::string& format) {
    return proof_of(
        "program t\ncollective allreduce(ranks: 2)\nselect dtypes: [f32]\n"
        "rank 0 {\n  buffer box[1] packets: LL16, copies: 2\n  buffer s[1]\n"
        "  channel up = memory(1)\n  tb 0 {\n    unpack_packets s <- box\n    sync\n"
        "    reduce output <- input, s\n    sync\n" +
        at_root + "  }\n}\nrank 1 {\n  buffer out[1] packets: " + format +
        ", copies: 2\n  channel up = memory(0)\n  tb 0 {\n"
        "    put_packets up.box <- input\n    unpack_packets output <- out\n  }\n}\n");
  };
  const std::string put = "put_packets up.out <- output\n";
  CHECK(sum(put, "LL16").orders.replicated);
  CHECK(sum(put, "sentinel").orders.replicated);
}

}  // namespace
}  // namespace mscclc
