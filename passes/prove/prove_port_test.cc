// Ports: a proxy reads the source and writes the far end some time after the block has posted.
#include "passes/prove/prove_test_text.h"

namespace mscclc {
namespace {

using testing::race;
using testing::verdict;

std::string ports(const std::string& body, const std::string& more = "") {
  return "program t\ncollective sendrecv(ranks: 2, shift: 1)\nrank r in 0..2 {\n  buffer s[4]\n"
         "  channel net = port(1 - r)\n  channel other = port(1 - r)\n"
         "  channel mem = memory(1 - r)\n" +
         more + "  tb 0 {\n    signal mem relaxed\n    wait mem relaxed\n    sync\n" + body +
         "  }\n}\n";
}

TEST_CASE("what a part that may be empty is flushed for counts for that part alone") {
  const auto forwards = [](const std::string& between, const std::string& more = "") {
    return "program t\ncollective custom(ranks: 2, input: 2, output: 2, inplace: false)\n"
           "ensure output[0] at q = input[0] at 1 - q for q in 0..2\n"
           "ensure output[1] at q = input[1] at q for q in 0..2\nrank r in 0..2 {\n"
           "  buffer p[1] packets: sentinel\n  buffer q[1] packets: sentinel\n"
           "  buffer s[1]\n  buffer t[1]\n"
           "  channel m = memory(1 - r)\n  channel pa = port(1 - r)\n"
           "  channel pb = port(1 - r)\n  semaphore done\n  tb 0 {\n    signal m\n    wait m\n"
           "    sync\n    copy t[0] <- input[0]\n    sync\n    put pa.s[0] <- t[0]\n"
           "    put_packets m.p[0] <- input[1] part: [0, 2]\n"
           "    put_packets m.p[0] <- input[1] part: [1, 2]\n    sync\n    signal m\n    wait m\n"
           "    sync\n    read_put_packets pb.q[0] <- p[0] part: [0, 2]\n"
           "    read_put_packets pa.q[0] <- p[0] part: [1, 2]\n    " +
           between +
           "    signal pa\n    wait pa\n    sync\n    copy output[0] <- s[0]\n"
           "    unpack_packets output[1] <- q[0] part: [0, 2]\n"
           "    unpack_packets output[1] <- q[0] part: [1, 2]\n    flush pa, pb\n  }\n" +
           more + "}\n";
  };
  const std::string overwrite = "copy t[0] <- input[1]\n";
  CHECK(verdict(forwards("flush pa\n    sync\n    " + overwrite)) == "proved");
  CHECK(verdict(forwards(overwrite)) == race("t[0] of rank 1"));
  CHECK(verdict(forwards("sync\n    " + overwrite)) == race("t[0] of rank 1"));
  CHECK(verdict(forwards("sync\n    release done\n",
                         "  tb 1 {\n    acquire done\n    sync\n    " + overwrite + "  }\n")) ==
        race("t[0] of rank 1"));
}

TEST_CASE("a put comes before the signal of the same port") {
  CHECK(verdict(ports("put net.output <- input\nsignal net\nflush net\nwait net\n")) == "proved");
  CHECK(verdict(ports("put net.output <- input\nsignal other\nflush net\nwait other\n")) ==
        race("output[0] of rank 1"));
  CHECK(verdict(ports("put net.output <- input\nsync\nsignal mem\nflush net\nwait mem\n")) ==
        race("output[0] of rank 1"));
}

TEST_CASE("the source of a put is read later than the call, unless a signal says it has been") {
  CHECK(verdict(ports("put net.output <- input\nsignal net\nwait net\n")) ==
        race("input[0] of rank 1"));
  CHECK(verdict(ports("put net.output <- input\nsignal net\nflush net\nwait net\n")) == "proved");
  // The peer's answer, sent when the data has come, shows it too.
  CHECK(verdict(
            ports("put net.output <- input\nsignal net\nwait net\nsync\nsignal mem\nwait mem\n")) ==
        "proved");
  CHECK(verdict(ports("put net.output <- input\nsignal net\nwait net\nsignal mem\nwait mem\n")) ==
        race("input[0] of rank 0"));
}

TEST_CASE("a flush does not say that the data has come") {
  CHECK(verdict(ports("put net.output <- input\nflush net\nsync\nsignal mem\nwait mem\n")) ==
        race("output[0] of rank 1"));
}

TEST_CASE("a source may change after a flush and a sync") {
  const auto twice = [](const std::string& between) {
    return ports("copy s[0] <- input\nsync\nput net.s[1] <- s[0]\nsignal net\n" + between +
                 "copy s[0] <- input\nsync\nput net.output <- s[0]\nsignal net\nflush net\n"
                 "wait net\nwait net\nsync\nsignal mem\nwait mem\n");
  };
  CHECK(verdict(twice("flush net\nsync\n")) == "proved");
  // Stores of the same bits are one value to a late reader: change it.
  CHECK(verdict(ports("copy s[0] <- input\nsync\nput net.output <- s[0]\nsignal net\n"
                      "copy s[0] <- s[2]\nsync\nflush net\nwait net\n")) == race("s[0] of rank 0"));
}

TEST_CASE("what is posted must be there: the block meets before a put") {
  CHECK(verdict(ports("copy s[0] <- input\nput net.output <- s[0]\nsignal net\nflush net\n"
                      "wait net\n")) == race("s[0] of rank 0"));
}

TEST_CASE("puts with signals and flushes") {
  CHECK(verdict(ports("put_with_signal_and_flush net.output <- input\nwait net\n")) == "proved");
  CHECK(verdict(ports("put_with_signal net.output <- input\nwait net\n")) ==
        race("input[0] of rank 1"));
}

TEST_CASE("a put of what came out of packets is after the loads that they were made of") {
  // In place a put overwrites what its peer sends: everyone's input[p] is output[p] of rank p.
  const auto in_place = [](const std::string& contract, const std::string& body) {
    return "program t\ncollective " + contract +
           "\nrank r in 0..2 {\n"
           "  let p = 1 - r\n  buffer parts[1] packets: LL16, copies: 2\n  buffer s[1]\n"
           "  channel mem = memory(p)\n  channel net = port(p)\n  tb 0 {\n"
           "    put_packets mem.parts <- input[p]\n" +
           body + "    signal net\n    flush net\n    wait net\n  }\n}\n";
  };
  CHECK(verdict(in_place("allreduce(ranks: 2, chunks: 2)",
                         "reduce_packets output[r] <- input[r], parts\nsync\n"
                         "put net.output[r] <- output[r]\n")) == "proved");
  // That some packet has come says nothing to a put of something else.
  CHECK(verdict(in_place("alltoall(ranks: 2, chunks: 1)",
                         "copy output[r] <- input[r]\nunpack_packets s <- parts\nsync\n"
                         "put net.output[r] <- input[p]\n")) ==
        race("output[0] of rank 1 in place"));
}

TEST_CASE("packets through a port are sent as they lie, when they are there") {
  const auto packets = [](const std::string& copies, const std::string& sync) {
    return "program t\ncollective sendrecv(ranks: 2, shift: 1)\nrank r in 0..2 {\n"
           "  buffer mine[1] packets: LL16" +
           copies + "\n  buffer inbox[1] packets: LL16" + copies +
           "\n  channel net = port(1 - r)\n  tb 0 {\n    copy_packets mine <- input\n" + sync +
           "    put_packets net.inbox <- mine\n    flush net\n    unpack_packets output <- inbox\n"
           "  }\n}\n";
  };
  CHECK(verdict(packets(", copies: 2", "sync\n")) == "proved");
  CHECK(verdict(packets(", copies: 2", "")) == race("mine[0] of rank 1"));
  CHECK(verdict(packets("", "sync\n")) == race("inbox[0] of rank 1"));
}

TEST_CASE("the threads do not meet between a put by a port and its signal") {
  const auto sent = [](const std::string& between) {
    return "program t\ncollective sendrecv(ranks: 2, chunks: 2, shift: 1)\nrank r in 0..2 {\n"
           "  channel net = port(1 - r)\n  channel mem = memory(1 - r)\n  tb 0 {\n"
           "    signal mem relaxed\n    wait mem relaxed\n    sync\n"
           "    put mem.output[1] <- input[1]\n" +
           between +
           "    put_with_signal_and_flush net.output[0] <- input[0]\n    wait net\n  }\n}\n";
  };
  CHECK(verdict(sent("sync\n")) == "proved");
  CHECK(verdict(sent("")) == race("output[1] of rank 1"));
}

TEST_CASE("a flush waits for what its own block has posted") {
  Program program =
      testing::as_written(ports("put net.output <- input\nsignal net\nwait net\nflush net\n"));
  CHECK(verdict(program) == "proved");
  for (Rank& rank : program.ranks) {  // as JSON may have it
    rank.ops.back().block = 1;
    rank.blocks = 2;
  }
  CHECK(verdict(program).starts_with("undecided: not decided: "));
}

TEST_CASE("a sentinel slot is not emptied while a port may send it") {
  const auto sent = [](const std::string& between) {
    return "program t\ncollective sendrecv(ranks: 2, shift: 1)\nselect dtypes: [f32]\n"
           "rank r in 0..2 {\n  buffer mine[1] packets: sentinel, copies: 2\n"
           "  buffer inbox[1] packets: sentinel, copies: 2\n  buffer s[1]\n"
           "  channel net = port(1 - r)\n  tb 0 {\n    copy_packets mine <- input\n    sync\n"
           "    put_packets net.inbox <- mine\n" +
           between +
           "    unpack_packets s <- mine\n    flush net\n    unpack_packets output <- inbox\n  "
           "}\n}\n";
  };
  CHECK(verdict(sent("flush net\nsync\n")) == "proved");
  CHECK(verdict(sent("")) == race("mine[0] of rank 1"));
}

TEST_CASE("slots that a port has sent on are empty when the block has met") {
  // Rank 1 fills a[0] again when it hears that it is empty.
  const auto forwarded = [](const std::string& between) {
    return "program t\ncollective custom(ranks: 2, input: 1, output: 1, inplace: false)\n"
           "ensure output[0] at 1 = input[0] at 1\nselect dtypes: [f32]\n"
           "rank 0 {\n  buffer a[2] packets: sentinel, copies: 2\n  buffer t[1]\n"
           "  channel mem = memory(1)\n  channel net = port(1)\n  tb 0 {\n"
           "    read_put_packets net.x <- a\n" +
           between +
           "    signal mem\n    unpack_packets t[0] <- a[0]\n  }\n}\n"
           "rank 1 {\n  buffer x[2] packets: sentinel, copies: 2\n  buffer t[1]\n"
           "  channel mem = memory(0)\n  channel net = port(0)\n  tb 0 {\n"
           "    put_packets mem.a[0], mem.a[1] <- input[0], input[0]\n"
           "    unpack_packets output[0], t[0] <- x[0], x[1]\n    wait mem\n    sync\n"
           "    put_packets mem.a[0] <- input[0]\n  }\n}\n";
  };
  CHECK(verdict(forwarded("sync\n")) == "proved");
  CHECK(verdict(forwarded("")) == race("a[0] of rank 0"));
}

TEST_CASE("sentinel packets that a port sends as they lie need not be emptied") {
  const auto sent = [](const std::string& flush, const std::string& copies) {
    return "program t\ncollective sendrecv(ranks: 2, shift: 1)\nselect dtypes: [f32]\n"
           "rank r in 0..2 {\n  buffer mine[1] packets: sentinel\n"
           "  buffer box[1] packets: sentinel, copies: " +
           copies + "\n  channel net = port(1 - r)\n  tb 0 {\n    copy_packets mine[0] <- input\n" +
           "    sync\n    put_packets net.box[0] <- mine[0]\n" + flush +
           "    unpack_packets output <- box[0]\n  }\n}\n";
  };
  CHECK(verdict(sent("flush net\n", "2")) == "proved");
  CHECK(verdict(sent("", "2")) != "proved");
  CHECK(verdict(sent("flush net\n", "1")) != "proved");
}

/// Each rank fills `mine`, sends it by a port, and does `before` between the two.
std::string sent_as_it_lies(const std::string& before, const std::string& format = "sentinel",
                            const std::string& fill = "copy_packets mine <- input\n") {
  return "program t\ncollective custom(ranks: 2, input: 1, output: 1, inplace: false)\n"
         "ensure output[0] at r = input[0] at r for r in 0..2\nselect dtypes: [f32]\n"
         "rank r in 0..2 {\n  buffer mine[1] packets: " +
         format + ", copies: 2\n  buffer inbox[1] packets: " + format +
         ", copies: 2\n  buffer s[2]\n  channel net = port(1 - r)\n  tb 0 {\n"
         "    copy output <- input\n    " +
         fill + "    sync\n" + before +
         "    sync\n    put_packets net.inbox <- mine\n    flush net\n"
         "    unpack_packets s[0] <- inbox\n  }\n}\n";
}
bool sends_no_packets(const std::string& program) {
  return testing::errors(program).find(" without packets of this call ") != std::string::npos;
}

TEST_CASE("a port does not send a sentinel slot that has been emptied") {
  const std::string take = "unpack_packets s[1] <- mine";
  CHECK(verdict(sent_as_it_lies("")) == "proved");
  CHECK(sends_no_packets(sent_as_it_lies(take + "\n")));
  // With flags nothing is emptied.
  CHECK(verdict(sent_as_it_lies(take + "\n", "LL16")) == "proved");
}

TEST_CASE("a port does not send a slot that was not filled in this call") {
  for (const std::string format : {"sentinel", "LL8", "LL16"}) {
    INFO(format);
    CHECK(sends_no_packets(sent_as_it_lies("", format, "")));
    CHECK(
        sends_no_packets(sent_as_it_lies("", format, "copy_packets mine <- input part: [0, 2]\n")));
  }
}

}  // namespace
}  // namespace mscclc
