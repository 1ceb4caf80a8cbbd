// Plans of which some ranks (symmetry.h) or some blocks (representatives.h) stand for all, and
// plans that only look like it.
#include "passes/prove/model/representatives.h"
#include "passes/prove/model/symmetry.h"
#include "passes/prove/prove_test_text.h"

namespace mscclc {
namespace {

using namespace testing;
using proof::Symmetry;

/// Every rank sends its input on to the next, through all ranks but one, and keeps what comes by.
std::string ring(const std::string& more = "", const std::string& head = "") {
  return "program t\ncollective allgather(ranks: 4)\n" + head + R"(
rank r in 0..4 {
  channel next = memory((r + 1) % 4) to prev
  channel prev = memory((r - 1) % 4) to next
  tb 0 {
    signal prev relaxed
    wait next relaxed
    sync
    copy output[r] <- input
    put next.output[r] <- input
    for s in 0 .. 3 {
      sync
      signal next
      wait prev
      sync
      if s < 2 { put next.output[(r - 1 - s) % 4] <- output[(r - 1 - s) % 4] }
    }
    )" + more +
         R"(
    signal prev
    wait next
  }
})";
}

uint32_t step(const std::string& text) { return Symmetry::find(as_written(text)).step(); }

/// The verdict of all ranks, which must be that of those that stand for all.
std::string both(const Program& program) {
  Diagnostics all, some;
  const Proof one = prove(program, all, {.symmetry_from = ~uint64_t{0}});
  const Proof other = prove(program, some, {.symmetry_from = 0});
  CHECK(one.proved == other.proved);
  CHECK(one.orders == other.orders);
  CHECK(one.keeps_input == other.keeps_input);
  CHECK(one.between_calls == other.between_calls);
  CHECK(all.has_errors() == some.has_errors());
  if (!all.has_errors() || !some.has_errors()) return one.proved ? "proved" : "";
  CHECK(all.all()[0].code == some.all()[0].code);
  return some.all()[0].code;
}

TEST_CASE("a ring is its own image") {
  const Symmetry found = Symmetry::find(as_written(ring()));
  CHECK(found.step() == 1);
  CHECK(found.turns() == 4);
  CHECK(found.chunk(kOutput, 3, 1) == 0);
  CHECK(found.chunk(kOutput, 1, 3) == 0);
  CHECK(found.chunk(kInput, 0, 3) == 0);
  CHECK(both(as_written(ring())) == "proved");
}

/// A ring with more thread blocks than a page of a clock has columns, each for a chunk. (The
/// processes of a rank do not fill whole pages by themselves.)
std::string wide_ring(const std::string& last) {
  return R"(program t
collective allgather(ranks: 3, chunks: 130)
rank r in 0..3 {
  channel next[b in 0..130] = memory((r + 1) % 3) to prev[b]
  channel prev[b in 0..130] = memory((r - 1) % 3) to next[b]
  tb b in 0..130 {
    signal prev[b] relaxed
    wait next[b] relaxed
    sync
    copy output[r, b] <- input[b]
    put next[b].output[r, b] <- input[b]
    sync
    signal next[b]
    wait prev[b]
    sync
    put next[b].output[(r - 1) % 3, b] <- output[(r - 1) % 3, b]
    sync
    )" + last +
         R"(
  }
})";
}

TEST_CASE("ranks of many thread blocks stand for all") {
  const std::string right = wide_ring("signal next[b]\nwait prev[b]\n");
  CHECK(step(right) == 1);
  CHECK(both(as_written(right)) == "proved");
  CHECK(both(as_written(wide_ring("signal next[b] relaxed\nwait prev[b] relaxed\n"))) == "race");
}

TEST_CASE("one rank that differs spoils it") {
  const std::string text = ring();
  const auto changed = [&](auto&& change) {
    Program program = as_written(text);
    change(program, program.ranks[2]);
    both(program);
    return Symmetry::find(program).trivial();
  };
  CHECK(!changed([](Program&, Rank&) {}));
  CHECK(changed([](Program&, Rank& rank) { rank.ops.pop_back(); }));
  CHECK(changed([](Program&, Rank& rank) { rank.ops[0].relaxed = false; }));
  CHECK(changed([](Program& program, Rank& rank) {
    for (const Op& op : rank.ops) {
      if (op.kind == OpKind::copy) program.operands[op.operands].first ^= 1;
    }
  }));
  CHECK(changed([](Program&, Rank& rank) { std::swap(rank.ops[3], rank.ops[4]); }));
}

TEST_CASE("nodes may be alike where ranks are not") {
  const auto pairs = [](const std::string& who) {
    return "program t\ncollective sendrecv(ranks: 4, shift: 2)\nrank r in 0..4 {\n"
           "  channel up = memory((r + 2) % 4) to down\n"
           "  channel down = memory((r + 2) % 4) to up\n  tb 0 {\n    " +
           kEnter + "put up.output <- input\n sync\n " + who +
           " sync\n signal up\n wait up\n  }\n}\n";
  };
  CHECK(step(pairs("")) == 1);
  CHECK(step(pairs("if r % 2 == 0 { sync }")) == 2);
  CHECK(step(pairs("if r == 0 { sync }")) == 4);
  for (const std::string who : {"", "if r % 2 == 0 { sync }", "if r == 0 { sync }"}) {
    both(as_written(pairs(who)));
  }
}

TEST_CASE("what is promised must turn, too") {
  // All ranks do the same, but of the root's input all have a copy.
  CHECK(step("program t\ncollective broadcast(ranks: 2, root: 0)\nrank r in 0..2 {\n"
             "  channel up = memory(1 - r)\n  tb 0 { signal up ; wait up }\n}\n") == 2);
}

/// Every rank sends its input to all others, and adds up what comes: in the order of the ranks from
/// its own on.
std::string packet_sum(const std::string& format, const std::string& copies = "2",
                       const std::string& more = "") {
  return "program t\ncollective allreduce(ranks: 4)\nrank r in 0..4 {\n"
         "  let others = [(r + i) % 4 for i in 1..4]\n  buffer inbox[others] packets: " +
         format + ", copies: " + copies +
         "\n  channel ch[p in others] = memory(p)\n"
         "  tb 0 {\n    for p in others { put_packets ch[p].inbox[r] <- input }\n" +
         more + "    reduce_packets output <- input, inbox[p] for p in others\n  }\n}\n";
}

TEST_CASE("ranks that exchange packets stand for all") {
  for (const std::string format : {"LL8", "LL16", "LL128", "sentinel"}) {
    CAPTURE(format);
    CHECK(step(packet_sum(format)) == 1);
    CHECK(both(as_written(packet_sum(format))) == "proved");
    // The next call's packets may come before this call's are read.
    CHECK(both(as_written(packet_sum(format, "1"))) == "race");
  }
}

TEST_CASE("of packets that are put twice ranks that stand for all show what all show") {
  const std::string next = "    put_packets ch[(r + 1) % 4].inbox[r] <- ";
  CHECK(both(as_written(packet_sum("LL16", "2", next + "input\n"))) == "proved");
  CHECK(both(as_written(packet_sum("sentinel", "2", next + "input\n"))) == "race");
  // Whose slot it is differs from rank to rank, and so does what is put there.
  CHECK(both(as_written(packet_sum(
            "LL16", "2", "    put_packets ch[(r + 1) % 4].inbox[(r + 2) % 4] <- input\n"))) ==
        "race");
}

TEST_CASE("a rank that treats packets in another way spoils it") {
  const Program whole = as_written(packet_sum("LL16"));
  const auto changed = [&](auto&& change) {
    Program program = as_written(packet_sum("LL16"));
    change(program, program.ranks[3]);
    CHECK(Symmetry::find(program).trivial());
    return both(program);
  };
  CHECK(changed([](Program&, Rank& rank) { rank.buffers[kFirstScratch].copies = 1; }) == "race");
  CHECK(changed([](Program& program, Rank& rank) {  // one slot is filled twice, another never
          program.operands[rank.ops[0].operands].first ^= 1;
        }) == "race");
  CHECK(changed([](Program&, Rank& rank) { rank.ops.erase(rank.ops.begin()); }) == "stuck");
}

/// What a rank stores in the next one's slot is what it has got from the one before: the chain of
/// values goes through all ranks, each of which stands for the next.
std::string packets_round(const std::string& copies) {
  return R"(program t
collective allgather(ranks: 4)
rank r in 0..4 {
  buffer inbox[3] packets: LL16, copies: )" +
         copies + R"(
  channel next = memory((r + 1) % 4) to prev
  channel prev = memory((r - 1) % 4) to next
  tb 0 {
    copy output[r] <- input
    put_packets next.inbox[0] <- input
    for s in 0..3 {
      if s < 2 { read_put_packets next.inbox[s + 1] <- inbox[s] }
      unpack_packets output[(r - 1 - s) % 4] <- inbox[s]
    }
  }
})";
}

TEST_CASE("values that go round are known where they have come from") {
  CHECK(step(packets_round("2")) == 1);
  CHECK(both(as_written(packets_round("2"))) == "proved");
  CHECK(both(as_written(packets_round("1"))) == "race");
}

/// Rank r's end of a port is the image of another rank's, and so are its reader and its writer.
std::string ports_in_a_ring(const std::string& flush) {
  return R"(program t
collective allgather(ranks: 4)
rank r in 0..4 {
  let mate = r + 1 - 2 * (r % 2), q = (r + 2) % 4
  channel net = port(q)
  channel enter = port(q)
  channel nvl = memory(mate)
  tb 0 {
    signal enter
    wait enter
    sync
    copy output[r] <- input
    put net.output[r] <- input
    signal net
  }
  tb 1 {
    signal nvl relaxed
    wait nvl relaxed
    sync
    put nvl.output[r] <- input
    wait net
    sync
    put nvl.output[q] <- output[q]
    sync
    signal nvl
    wait nvl
  }
  tb 0 { )" +
         flush + R"( }
})";
}

TEST_CASE("ports turn with their ranks") {
  const Program program = as_written(ports_in_a_ring("flush net"));
  CHECK(Symmetry::find(program).step() == 2);
  CHECK(both(program) == "proved");
  // The caller may change its input while it is read.
  CHECK(both(as_written(ports_in_a_ring("sync"))) == "race");
}

TEST_CASE("every op that ports need is missed by ranks that stand for all") {
  const Program whole = as_written(ports_in_a_ring("flush net"));
  for (size_t i = 0; i < whole.ranks[0].ops.size(); ++i) {
    Program program = as_written(ports_in_a_ring("flush net"));
    for (Rank& rank : program.ranks) rank.ops.erase(rank.ops.begin() + static_cast<ptrdiff_t>(i));
    CAPTURE(i);
    CHECK(Symmetry::find(program).step() == 2);
    Diagnostics all, some;
    CHECK(prove(program, all, {.symmetry_from = ~uint64_t{0}}).proved ==
          prove(program, some, {.symmetry_from = 0}).proved);
    CHECK(all.has_errors() == some.has_errors());
  }
}

TEST_CASE("ranks that stand for all find what is wrong") {
  const auto without = [](OpKind kind, int which) {
    Program program = as_written(ring());
    for (Rank& rank : program.ranks) {
      int n = which;
      for (size_t i = 0; i < rank.ops.size(); ++i) {
        if (rank.ops[i].kind != kind || n-- > 0) continue;
        rank.ops.erase(rank.ops.begin() + static_cast<ptrdiff_t>(i));
        break;
      }
    }
    CHECK(Symmetry::find(program).step() == 1);
    return both(program);
  };
  CHECK(without(OpKind::sync, 0) == "race");
  CHECK(without(OpKind::sync, 1) == "race");
  CHECK(without(OpKind::signal, 0) == "stuck");
  CHECK(without(OpKind::wait, 0) == "race");
  CHECK(without(OpKind::put, 1) == "wrong-result");
  CHECK(without(OpKind::copy, 0) == "wrong-result");
}

TEST_CASE("a chunk that is longest at ranks that stand for all may be shorter at others") {
  // What lies in s[0] beyond the end of input[r] is left to chance at rank 1 alone.
  const auto twice = [](const std::string& between, const std::string& even) {
    return "program t\ncollective custom(ranks: 2, input: 2, output: 2, inplace: false" + even +
           ")\nensure output[c] at 0 = input[c] at 0 for c in 0..2\n"
           "ensure output[c] at 1 = input[c] at 1 for c in 0..2\n"
           "rank r in 0..2 {\n  buffer s[3]\n  tb 0 {\n"
           "    copy output[r] <- input[r] ; copy output[1 - r] <- input[1 - r] ; sync\n"
           "    copy s[1] <- input[r] ; copy s[2] <- input[r] ; sync\n    copy s[0] <- s[1]\n" +
           between + "    copy s[0] <- s[2] ; sync\n    copy output[r] <- s[0]\n  }\n}\n";
  };
  CHECK(step(twice("", "")) == 1);
  CHECK(both(as_written(twice("", ""))) == "race");
  CHECK(both(as_written(twice("    sync\n", ""))) == "proved");
  CHECK(both(as_written(twice("", ", even: true"))) == "proved");
}

/// How many ops stand for all of a plan's; 0: all do for themselves.
size_t stand_for_all(const Program& program) {
  const auto found = proof::Representatives::find(program, false);
  size_t ops = 0;
  if (found) {
    for (const Rank& rank : found->program.ranks) ops += rank.ops.size();
  }
  return ops;
}
size_t stand_for_all(const std::string& text) { return stand_for_all(as_written(text)); }

/// Four chunks of one rank, which `blocks` copy from input to output.
std::string copying(const std::string& blocks, const std::string& even = "") {
  return "program t\ncollective custom(ranks: 1, input: 4, output: 4, inplace: false" + even +
         ")\nensure output[c] at 0 = input[c] at 0 for c in 0..4\nrank 0 {\n  buffer s[12]\n"
         "  semaphore m = 0\n  semaphore n[i in 0..4] = 0\n" +
         blocks + "\n}\n";
}

/// Two ranks, where `b` numbers the blocks, each with a channel.
std::string exchanging(const std::string& block, const std::string& even = "") {
  return "program t\nparam R = 2\ncollective allgather(ranks: R, chunks: 4" + even +
         ")\n"
         "rank r in 0..R {\n  let o = 1 - r\n  buffer s[4]\n  channel ch[b in 0..4] = memory(o) to "
         "ch[b]\n"
         "  tb b in 0..4 {\n    copy output[r, b] <- input[b]\n" +
         block +
         "    sync ; copy output[o, b] <- s[b] ; sync\n    signal ch[b] ; wait ch[b]\n  }\n}\n";
}

const std::string kAnswer =
    "    put ch[b].s[b] <- input[b] ; sync\n    signal ch[b] ; wait ch[b]\n";

TEST_CASE("of blocks that are images of one another, and share nothing, one stands for all") {
  // Chunk 0 is the longest and has no image: its block stands for itself.
  const std::string apart =
      copying("  tb b in 0..4 { copy s[b] <- input[b] ; sync ; copy output[b] <- s[b] }");
  CHECK(stand_for_all(apart) == 6);
  CHECK(both(as_written(apart)) == "proved");
  CHECK(stand_for_all(exchanging(kAnswer)) == 2 * 2 * 10);
  CHECK(both(as_written(exchanging(kAnswer))) == "proved");
  // Blocks that meet in twos are a component; so are those that a semaphore ties.
  const std::string meeting = copying(
      "  tb b in 0..4 {\n    let p = b - b % 2\n    let o = p + 1 - b % 2\n"
      "    copy s[b] <- input[b] ; barrier p .. p + 2 ; copy output[o] <- s[o]\n  }",
      ", even: true");
  CHECK(stand_for_all(meeting) == 6);
  CHECK(both(as_written(meeting)) == "proved");
  CHECK(both(as_written(copying(
            "  tb b in 0..4 { copy s[b] <- input[b] ; sync ; release n[b] }\n"
            "  tb t in 4..8 { acquire n[t - 4] ; sync ; copy output[t - 4] <- s[t - 4] }"))) ==
        "proved");
}

TEST_CASE("blocks that share something do not stand for one another") {
  CHECK(both(as_written(
            copying("  tb b in 0..4 { copy s[0] <- input[b] ; sync ; copy output[b] <- s[0] }",
                    ", even: true"))) == "race");
  CHECK(both(as_written(
            copying("  tb b in 0..4 { copy s[b] <- input[b] ; sync ; release m }\n"
                    "  tb t in 4..8 { acquire m ; sync ; copy output[t - 4] <- s[t - 4] }",
                    ", even: true"))) == "undecided");
  Program one_channel = as_written(exchanging(kAnswer, ", even: true"));
  for (const Rank& rank : one_channel.ranks) {
    for (const Op& op : rank.ops) {
      if (op.kind == OpKind::signal || op.kind == OpKind::wait) {
        one_channel.operands[op.operands].channel = 0;
      }
    }
  }
  CHECK(both(one_channel) == "undecided");
}

TEST_CASE("blocks that differ do not stand for one another") {
  const auto relaxed = [](const std::string& signal) {
    return both(as_written(
        exchanging("    put ch[b].s[b] <- input[b] ; sync\n    " + signal + "\n    wait ch[b]\n")));
  };
  CHECK(relaxed("signal ch[b]") == "proved");
  CHECK(relaxed("if b < 3 { signal ch[b] } else { signal ch[b] relaxed }") == "race");
  // Two chunks a block, in the same order at one and crosswise at the other.
  const auto twos = [](const std::string& first, const std::string& second) {
    return both(as_written(copying("  tb b in 0..2 { copy output[2 * b] <- input[" + first +
                                       "] ; copy output[2 * b + 1] <- input[" + second + "] }",
                                   ", even: true")));
  };
  CHECK(twos("2 * b", "2 * b + 1") == "proved");
  CHECK(twos("3 * b", "b + 1") == "wrong-result");
}

TEST_CASE("blocks whose chunks are as long as their images' stand for one another") {
  // What lies in s[3 b] beyond the end of input[b] is left to chance, but not of the longest.
  const auto twice = [](const std::string& between, const std::string& even) {
    return copying(
        "  tb b in 0..4 {\n    copy s[3 * b + 1] <- input[b] ; copy s[3 * b + 2] <- "
        "input[b] ; sync\n    copy s[3 * b] <- s[3 * b + 1]\n" +
            between +
            "    copy s[3 * b] <- s[3 * b + 2] ; sync\n"
            "    copy output[b] <- s[3 * b]\n  }",
        even);
  };
  CHECK(both(as_written(twice("", ""))) == "race");
  CHECK(both(as_written(twice("    sync\n", ""))) == "proved");
  CHECK(both(as_written(twice("", ", even: true"))) == "proved");
}

TEST_CASE("an output that no block writes is missed, though some blocks stand for all others") {
  CHECK(both(as_written(copying("  tb b in 0..3 { copy output[b] <- input[b] }",
                                ", even: true"))) == "wrong-result");
}

}  // namespace
}  // namespace mscclc
