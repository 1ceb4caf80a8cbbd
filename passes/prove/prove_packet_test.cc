// Packets say themselves that they have come: what that publishes, and when a slot may be filled
// again.
#include <fmt/format.h>

#include "passes/prove/prove_test_text.h"

namespace mscclc {
namespace {

using testing::packet_ring;
using testing::race;
using testing::verdict;

/// Two ranks that add up their inputs.
std::string sum(const std::string& body, const std::string& buffers,
                const std::string& select = "") {
  return "program t\ncollective allreduce(ranks: 2)\n" + select + "\nrank r in 0..2 {\n" + buffers +
         "\n  channel up = memory(1 - r)\n" + body + "\n}\n";
}

const std::string kOneShot = R"(tb 0 {
    put_packets up.inbox <- input
    reduce_packets output <- input, inbox
  })";

TEST_CASE("two copies of a slot are enough where each call hears from the reader") {
  // Packets of call k + 1 were sent by a rank that had left call k: a kernel boundary.
  CHECK(verdict(sum(kOneShot, "buffer inbox[1] packets: LL16, copies: 2")) == "proved");
  CHECK(verdict(sum(kOneShot, "buffer inbox[1] packets: LL8, copies: 3")) == "proved");
  CHECK(verdict(sum(kOneShot, "buffer inbox[1] packets: LL16")) == race("inbox[0] of rank 1"));
}

/// Rank 1 sends its input as packets to 'a' of rank 0, and takes what comes back from 'b'. Slots
/// have one copy: 'a' is free again when rank 1 knows that it has been read.
std::string there_and_back(const std::string& rank0, const std::string& format = "LL16") {
  return "program t\ncollective allreduce(ranks: 2)\n"
         "rank 0 {\n  buffer a[1] packets: LL16\n  channel up = memory(1)\n" +
         rank0 + "\n}\nrank 1 {\n  buffer b[1] packets: " + format +
         "\n  channel up = memory(0)\n" +
         "  tb 0 {\n    put_packets up.a <- input\n    unpack_packets output <- b\n  }\n}\n";
}

TEST_CASE("a value that is sent on proves that what it was made of has been read") {
  CHECK(verdict(there_and_back("tb 0 { reduce_send_packets output, up.b <- input, a }")) ==
        "proved");
  // Another op of the same block, cut alike: every thread sends on what it has added up itself.
  const std::string two_ops = "tb 0 {\nreduce_packets output <- input, a\n";
  CHECK(verdict(there_and_back(two_ops + "put_packets up.b <- output\n}")) == "proved");
  CHECK(verdict(there_and_back(two_ops + "put_packets up.b <- output\n}", "LL8")) ==
        race("output[0] of rank 0"));
  CHECK(verdict(there_and_back(two_ops + "sync\nput_packets up.b <- output\n}", "LL8")) ==
        "proved");
}

TEST_CASE("packets whose value does not depend on a slot do not say that it has been read") {
  const auto both = [](const std::string& rank0) {
    return "program t\ncollective sendrecv(ranks: 2, shift: 1)\n"
           "rank 0 {\n  buffer a[1] packets: LL16\n  channel up = memory(1)\n" +
           rank0 +
           "\n}\nrank 1 {\n  buffer b[1] packets: LL16\n  channel up = memory(0)\n"
           "  tb 0 {\n    put_packets up.a <- input\n    unpack_packets output <- b\n  }\n}\n";
  };
  CHECK(verdict(both("tb 0 { put_packets up.b <- input ; unpack_packets output <- a }")) ==
        race("b[0] of rank 1"));
}

TEST_CASE("one writer a call and slot") {
  Diagnostics diagnostics;
  prove(testing::as_written(sum(R"(tb 0 {
      put_packets up.inbox <- input
      reduce_packets output <- input, inbox
      sync
      put_packets up.inbox <- output
    })",
                                "buffer inbox[1] packets: LL16, copies: 2")),
        diagnostics);
  REQUIRE(diagnostics.has_errors());
  // The results are wrong, too, for that one reason.
  for (const Diagnostic& d : diagnostics.all()) CHECK(d.code == "slot-twice");
}

TEST_CASE("packets depend on what they were made of, not on what was sent by the same op") {
  // A reader of t[1] knows that input[1] may change, and has no word of input[0].
  const auto sent = [](const std::string& read) {
    return testing::exchange("tb 0 {\n" + testing::kEnter + R"(
      copy s[0] <- input[0]
      copy s[1] <- input[0]
      sync
      signal down
      wait down
      sync
      put_packets up.t[0], up.t[1] <- s[0], s[1]
      unpack_packets output <- )" +
                                 read + R"(
      sync
      put up.s[1] <- input
      sync
      signal up
      wait up
    })",
                             "buffer t[2] packets: LL16, copies: 2");
  };
  CHECK(verdict(sent("t[1]")) == "proved");
  CHECK(verdict(sent("t[0]")) == race("s[1] of rank 1"));
}

TEST_CASE("packets that are put again may still be on their way when the first have been read") {
  const auto sent = [](const std::string& again) {
    return testing::exchange("tb 0 {\n" + testing::kEnter + R"(
      copy s[0] <- input[0]
      sync
      signal down
      wait down
      sync
      put_packets up.t[0] <- s[0]
      )" + again + R"(
      unpack_packets output[0] <- t[0]
      sync
      put up.s[0] <- input[0]
      sync
      signal up
      wait up
    })",
                             "buffer t[2] packets: LL16, copies: 2");
  };
  CHECK(verdict(sent("")) != race("s[0] of rank 1"));
  CHECK(verdict(sent("put_packets up.t[0] <- s[0]")) == race("s[0] of rank 1"));
}

TEST_CASE("packets that no rank sends are waited for forever") {
  CHECK(verdict(sum("tb 0 {\n put_packets up.inbox[0] <- input\n"
                    " reduce_packets output <- input, inbox[1]\n}",
                    "buffer inbox[2] packets: LL16, copies: 2"))
            .starts_with("stuck: "));
}

TEST_CASE("a sentinel slot is empty again before it is filled") {
  const std::string floats = "select dtypes: [f32]";
  CHECK(verdict(sum(kOneShot, "buffer inbox[1] packets: sentinel, copies: 2", floats)) == "proved");
  CHECK(verdict(sum(kOneShot, "buffer inbox[1] packets: sentinel", floats)) != "proved");
}

TEST_CASE("a sentinel slot can be read once") {
  CHECK(verdict(sum(R"(tb 0 {
      put_packets up.inbox <- input
      reduce_packets output <- input, inbox
      reduce_packets output <- input, inbox
    })",
                    "buffer inbox[1] packets: sentinel, copies: 2", "select dtypes: [f32]"))
            .starts_with("stuck: "));
}

TEST_CASE("a part of a sentinel slot can be read once") {
  const auto take = [](const std::string& parts) {
    return "program t\ncollective custom(ranks: 1, input: 1, output: 1, inplace: false)\n"
           "ensure output[0] at 0 = input[0] at 0\nselect dtypes: [f32]\n"
           "rank 0 {\n  buffer box[1] packets: sentinel\n  buffer s[1]\n  tb 0 {\n"
           "    copy output <- input\n    copy_packets box <- input part: [0, 2]\n"
           "    copy_packets box <- input part: [1, 2]\n    sync\n" +
           parts + "  }\n}\n";
  };
  const std::string whole = "    unpack_packets s <- box\n";
  const std::string half0 = "    unpack_packets s <- box part: [0, 2]\n";
  const std::string half1 = "    unpack_packets s <- box part: [1, 2]\n";
  CHECK(verdict(take(half0 + half1)) == "proved");
  CHECK(verdict(take(half0 + "    sync\n" + half0 + half1)).starts_with("stuck: "));
  CHECK(verdict(take(half0 + "    sync\n" + whole)).starts_with("stuck: "));
}

TEST_CASE("packets publish no plain stores before them") {
  const auto mixed = [](const std::string& body) {
    return "program t\ncollective sendrecv(ranks: 2, chunks: 2, shift: 1)\nrank r in 0..2 {\n"
           "  buffer inbox[1] packets: LL16, copies: 2\n  channel up = memory(1 - r)\n"
           "  tb 0 {\n    signal up relaxed\n    wait up relaxed\n    sync\n"
           "    put up.output[0] <- input[0]\n    sync\n"
           "    put_packets up.inbox <- input[1]\n    unpack_packets output[1] <- inbox\n" +
           body + "  }\n}\n";
  };
  CHECK(verdict(mixed("")) == race("output[0] of rank 1"));
  CHECK(verdict(mixed("signal up\nwait up\n")) == "proved");
}

TEST_CASE("packets by the switch reach all members") {
  const auto gather = [](const std::string& copies) {
    return "program t\ncollective allgather(ranks: 2)\nrank r in 0..2 {\n"
           "  buffer mine[1] packets: LL16\n  buffer all[2] packets: LL16" +
           copies +
           "\n  channel sw = switch(0..2)\n"
           "  tb 0 {\n    copy_packets mine <- input\n    sync\n"
           "    switch_broadcast_packets sw.all[r] <- mine\n"
           "    unpack_packets output[0] <- all[0]\n    unpack_packets output[1] <- all[1]\n"
           "  }\n}\n";
  };
  CHECK(verdict(gather(", copies: 2")) == "proved");
  CHECK(verdict(gather("")) != "proved");
}

/// Rank 0 sends its input to rank 1, which sends something back; so neither is two calls ahead.
std::string answered(const std::string& put, const std::string& take) {
  return "program t\ncollective custom(ranks: 2, input: 1, output: 1, inplace: false)\n"
         "ensure output[0] at 1 = input[0] at 0\n"
         "rank 0 {\n  buffer a[1] packets: LL16, copies: 2\n  buffer t[1]\n"
         "  channel up = memory(1)\n  tb 0 {\n    put_packets up.b <- input\n    " +
         take +
         "\n  }\n}\nrank 1 {\n  buffer b[1] packets: LL16, copies: 2\n  channel up = memory(0)\n"
         "  tb 0 {\n    " +
         put + "\n    unpack_packets output <- b\n  }\n}\n";
}

TEST_CASE("a part of packets that may be empty publishes nothing") {
  const auto part = [](const std::string& part) {
    return answered("put_packets up.a <- input part: " + part,
                    "unpack_packets t[0] <- a[0] part: " + part);
  };
  CHECK(verdict(part("[0, 2]")) == "proved");
  CHECK(verdict(part("[1, 2]")) == race("b[0] of rank 1"));
  Diagnostics diagnostics;
  CHECK(prove(testing::as_written(part("[0, 2]")), diagnostics).between_calls ==
        BetweenCalls::meeting);
}

TEST_CASE("parts of the next call do not take the place of those that are not read yet") {
  // Rank 1 publishes to rank 0 nothing that it knows after reading.
  const auto sent = [](const std::string& copies, const std::string& back) {
    return "program t\ncollective custom(ranks: 2, input: 1, output: 1, inplace: false)\n"
           "ensure output[0] at 1 = input[0] at 0\n"
           "rank 0 {\n  buffer a[1] packets: LL16" +
           copies +
           "\n  buffer t[1]\n  channel c = memory(1)\n  tb 0 {\n"
           "    put_packets c.b[0] <- input[0] part: [0, 3]\n"
           "    unpack_packets t[0] <- a[0] part: [0, 3]\n    sync\n"
           "    put c.output[0] <- input[0]\n    sync\n    signal c\n" +
           (back.empty() ? "" : "    wait c\n") + "  }\n}\nrank 1 {\n  buffer b[1] packets: LL16" +
           copies +
           "\n  buffer t[1]\n  channel c = memory(0)\n  tb 0 {\n"
           "    put_packets c.a[0] <- input[0] part: [0, 3]\n"
           "    unpack_packets t[0] <- b[0] part: [0, 3]\n    wait c\n    sync\n" +
           back + "  }\n}\n";
  };
  CHECK(verdict(sent("", "")) == race("b[0] of rank 1"));
  CHECK(verdict(sent(", copies: 2", "")) == "proved");
  CHECK(verdict(sent("", "    signal c\n")) == "proved");
}

TEST_CASE("parts that arrive are distinguished") {
  const auto twice = [](const std::string& part) {
    return answered(
        "put_packets up.a <- input part: [0, 2]\nput_packets up.a <- input part: " + part,
        "unpack_packets t[0] <- a[0]");
  };
  CHECK(verdict(twice("[1, 2]")) == "proved");
  CHECK(verdict(twice("[0, 2]")).starts_with("stuck: "));
  const std::string two_blocks =
      "put_packets up.a <- input part: [0, 2]\n}\ntb 1 {\n"
      "put_packets up.a <- input part: [0, 2]\n}\ntb 2 {\n";
  CHECK(verdict(answered(two_blocks, "unpack_packets t[0] <- a[0]")).starts_with("stuck: "));
}

TEST_CASE("packets depend on those bytes that they were made of") {
  const auto sent = [](const std::string& read, const std::string& put) {
    return testing::exchange("tb 0 {\n" + testing::kEnter + R"(
      copy s[0] <- input[0]
      sync
      signal down
      wait down
      sync
      put_packets up.t[0] <- s[0]
      put_packets up.t[1] <- s[0]
      unpack_packets )" + read + R"(
      sync
      put up.s[0] <- input[0] )" +
                                 put + R"(
      put up.output[0] <- input[0]
      sync
      signal up
      wait up
    })",
                             "buffer t[2] packets: LL16, copies: 2\nbuffer u[2]");
  };
  CHECK(verdict(sent("u[0], u[1] <- t[0], t[1]", "")) == "proved");
  // Each was read once for t[0] and once for t[1].
  CHECK(verdict(sent("u[0] <- t[1]", "")) == race("s[0] of rank 1"));
  CHECK(verdict(sent("u[0] <- t[0]", "")) == race("s[0] of rank 1"));
  CHECK(verdict(sent("u[0], u[1] <- t[0], t[1] part: [0, 2]", "")) == race("s[0] of rank 1"));
}

/// Rank 0 reads the input of rank 1 and answers with packets of a chunk in which it had stored a
/// sum of that, and other ops something else since; rank 1 then stores in its input.
std::string stored_over(const std::string& since) {
  return fmt::format(R"(program t
collective custom(ranks: 2, input: 1, output: 1, inplace: true)
ensure output[0] at 1 = input[0] at 0
rank 0 {{
  buffer t[1]
  buffer u[1]
  channel c = memory(1)
  tb 0 {{
    wait c
    sync
    get t[0] <- c.input[0]
    sync
    reduce u[0] <- input[0], t[0] op: sum
    sync
    {}
    sync
    put_packets c.k[0] <- u[0]
    put_packets c.m[0] <- input[0]
  }}
}}
rank 1 {{
  buffer k[1] packets: LL16, copies: 2
  buffer m[1] packets: LL16, copies: 2
  buffer s[1]
  channel c = memory(0)
  tb 0 {{
    signal c
    unpack_packets s[0] <- k[0]
    sync
    unpack_packets output[0] <- m[0]
  }}
}}
)",
                     since);
}

// No packet comes later than the load: the packets are of what was stored over the sum.
TEST_CASE("of a chunk that was stored over in parts nothing is left") {
  const auto parts = [](int first, int count) {
    std::string ops;
    for (int i = first; i < count; ++i) {
      ops += fmt::format("copy u[0] <- input[0] part: [{}, {}]\n", i, count);
    }
    return ops;
  };
  CHECK(verdict(stored_over("")) == "proved");
  CHECK(verdict(stored_over("copy u[0] <- input[0]")) == race("output[0] of rank 1 in place"));
  CHECK(verdict(stored_over(parts(0, 2))) == race("output[0] of rank 1 in place"));
  CHECK(verdict(stored_over(parts(0, 3))) == race("output[0] of rank 1 in place"));
  CHECK(verdict(stored_over(parts(1, 2))) == race("output[0] of rank 1 in place"));  // half is left
}

TEST_CASE("a second reader of a sentinel slot waits forever") {
  const auto take = [](const std::string& op) {
    return sum(
        "tb 0 {\n put_packets up.inbox <- input\n" + op + "\n reduce output <- input, s[0]\n}",
        "buffer inbox[1] packets: sentinel, copies: 2\n  buffer s[2]", "select dtypes: [f32]");
  };
  CHECK(verdict(take("unpack_packets s[0] <- inbox[0]\n sync\n")) == "proved");
  CHECK(verdict(take("unpack_packets s[0] <- inbox[0]\n unpack_packets s[1] <- inbox[0]\n sync\n"))
            .starts_with("stuck: "));
}

/// Rank 0 sends each of two ranks the other's half, too, which passes it on; each answers.
std::string halves(const std::string& copies) {
  return R"(program t
collective broadcast(ranks: 3, root: 0)
rank 0 {
  channel ra[q in 1..3] = memory(q) to a
  buffer w[2] packets: LL16, copies: 2
  buffer j[1]
  tb 0 {
    put_packets ra[1].s[0] <- input[0] part: [0, 2]
    put_packets ra[2].s[0] <- input[0] part: [1, 2]
    copy output[0] <- input[0]
    unpack_packets j[0] <- w[0]
    unpack_packets j[0] <- w[1]
  }
}
rank r in 1..3 {
  channel a = memory(0) to ra[r]
  channel c = memory(3 - r)
  buffer s[1] packets: LL16, copies: 2
  buffer t[1] packets: LL16, copies: )" +
         copies + R"(
  tb 0 {
    read_put_packets c.t[0] <- s[0] part: [r - 1, 2]
    unpack_packets output[0] <- s[0] part: [r - 1, 2]
    unpack_packets output[0] <- t[0] part: [2 - r, 2]
    sync
    put_packets a.w[r - 1] <- output[0]
  }
}
)";
}

// A unit of t is stored by the thread that has read it of s, and so knows of the calls before,
// wherever those had their halves.
TEST_CASE("threads know of earlier calls by the very packets that they store") {
  CHECK(verdict(halves("2")) == "proved");
  CHECK(verdict(halves("1")).starts_with("race: race at t[0] of rank "));
}

/// Each rank's port sends 'out' as it lies, which `parts` blocks fill together. They take what
/// comes in as many parts, except for one that may be left out. Only packets of later calls
/// show a rank that its port has read.
std::string pieces(int parts, int left_out = -1) {
  const std::string n = std::to_string(parts);
  return R"(program t
collective custom(ranks: 2, input: 2, output: 2)
ensure output[c] at 0 = input[c] at 0 for c in 0..2
rank r in 0..2 {
  buffer out[2] packets: LL16, copies: 2
  buffer inbox[2] packets: LL16, copies: 2
  buffer junk[2]
  channel net = port(1 - r)
  for i in 0..)" +
         n + R"( {
    tb i {
      copy_packets out[0..2] <- input[0..2] part: [i, )" +
         n + R"(]
      barrier 0..)" +
         n + R"(
      if i == 0 { put_packets net.inbox[0..2] <- out[0..2] ; copy output[0..2] <- input[0..2] }
      if i != )" +
         std::to_string(left_out) + R"( { unpack_packets junk[0..2] <- inbox[0..2] part: [i, )" +
         n + R"(] }
    }
  }
}
)";
}

// Of three parts of two slots any may be empty for some size, but not all that touch one slot.
TEST_CASE("what all blocks of a rank have read piece by piece has come by the end of the call") {
  CHECK(verdict(pieces(2)) == "proved");  // a slot each
  CHECK(verdict(pieces(3)) == "proved");
  CHECK(verdict(pieces(4)) == "proved");
  CHECK(verdict(pieces(70)) == "proved");
  for (const int left_out : {0, 1, 2}) {
    CHECK(verdict(pieces(3, left_out)).starts_with("race: race at "));
  }
}

TEST_CASE("what empties a slot is over when its rank's next call is known of by packets") {
  CHECK(verdict(packet_ring("3", "LL16", 2)) == "proved");
  CHECK(verdict(packet_ring("3", "sentinel", 2)) == "proved");
  CHECK(verdict(packet_ring("3", "sentinel", 1)) != "proved");
}

TEST_CASE("copies are suggested with a number that helps, and only then") {
  const auto said = [](const std::string& reader) {
    Diagnostics diagnostics;
    const Program program = testing::as_written(
        "program t\ncollective custom(ranks: 2, input: 1, output: 1, inplace: false)\n"
        "ensure output[0] at 1 = input[0] at 0\nrank r in 0..2 {\n  buffer s[1]\n"
        "  channel ch = memory(1 - r)\n  tb 0 {\n    if r == 0 {\n      put ch.s[0] <- input\n"
        "      sync ; signal ch" +
        reader + "\n      sync ; copy output <- s[0]\n    }\n  }\n}\n");
    prove(program, diagnostics, {.try_copies = true});
    std::string text;
    for (const Diagnostic& d : diagnostics.all()) {
      for (const Note& note : d.notes) text += note.text + "\n";
    }
    REQUIRE(text.find("must wait for a signal") != std::string::npos);
    return text.find("use 2 copies") != std::string::npos
               ? 2
               : text.find("or give 's' 2 copies ('copies: 2'), and let rank 1 begin each call") !=
                     std::string::npos;
  };
  // Rank 1 answers before it reads: it lags by one call at most.
  CHECK(said(" ; wait ch\n    } else {\n      signal ch relaxed ; wait ch") == 2);
  // It never answers: it may lag by any number of calls, unless it says that it does not.
  CHECK(said("\n    } else {\n      wait ch") == 1);
}

// What follows would take hours, or all memory, if each access were compared with all before it.

TEST_CASE("a chunk may be loaded a hundred thousand times beside packets", "[large]") {
  CHECK(verdict(sum("tb 0 {\n    put_packets up.inbox <- input\n    copy s[0] <- input\n    sync\n"
                    "    for i in 0..100000 { copy t[i] <- s[0] }\n"
                    "    reduce_packets output <- input, inbox\n  }",
                    "buffer inbox[1] packets: LL16, copies: 2\n  buffer s[1]\n"
                    "  buffer t[100000]")) == "proved");
}

TEST_CASE("a sum may grow by packets twenty thousand times, thread by thread", "[large]") {
  CHECK(verdict(sum("tb 0 {\n    for i in 0..N { put_packets up.inbox[i] <- input }\n"
                    "    copy s[0] <- input\n    sync\n"
                    "    for i in 0..N { reduce_packets s[0] <- s[0], inbox[i] }\n"
                    "    reduce_packets output <- input, inbox[0]\n  }",
                    "let N = 20000\n  buffer inbox[N] packets: LL16, copies: 2\n"
                    "  buffer s[1]")) == "proved");
}

TEST_CASE("an op may take packets from forty thousand slots", "[large]") {
  CHECK(verdict(sum("tb 0 {\n    put_packets up.inbox[i] for i in 0..N <- input for i in 0..N\n"
                    "    unpack_packets s[i] for i in 0..N <- inbox[i] for i in 0..N\n"
                    "    reduce_packets output <- input, inbox[0]\n  }",
                    "let N = 40000\n  buffer inbox[N] packets: LL16, copies: 2\n"
                    "  buffer s[N]")) == "proved");
}

}  // namespace
}  // namespace mscclc
