// What orders two accesses inside a rank and between ranks: block syncs, signals, semaphores,
// barriers, parts, rounds. Every rule has a program that it accepts, and one a step away.
#include "passes/prove/prove_test_text.h"

namespace mscclc {
namespace {

using testing::exchange;
using testing::kEnter;
using testing::kInCopies;
using testing::kPackets;
using testing::race;
using testing::reduction;
using testing::verdict;

TEST_CASE("a signal publishes what all threads have done before the block last met") {
  CHECK(verdict(exchange("tb 0 {\n" + kEnter + R"(
    put up.output <- input
    sync
    signal up
    wait up
  })")) == "proved");
  CHECK(verdict(exchange("tb 0 {\n" + kEnter + R"(
    put up.output <- input
    signal up
    wait up
  })")) == race("output[0] of rank 1"));
}

TEST_CASE("all threads learn of a wait only when they have met") {
  const auto through_scratch = [](const std::string& between) {
    return exchange("tb 0 {\n" + kEnter + "put up.s[0] <- input\nsync\nsignal up\nwait up\n" +
                    between + "copy output <- s[0]\nsync\nsignal up\nwait up\n}");
  };
  CHECK(verdict(through_scratch("sync\n")) == "proved");
  CHECK(verdict(through_scratch("")) == race("s[0] of rank 1"));
}

TEST_CASE("relaxed signals and waits order no stores") {
  const auto leave = [](const std::string& signal, const std::string& wait) {
    return exchange("tb 0 {\n" + kEnter + "put up.output <- input\nsync\n" + signal + "\n" + wait +
                    "\n}");
  };
  CHECK(verdict(leave("signal up", "wait up")) == "proved");
  CHECK(verdict(leave("signal up relaxed", "wait up")) == race("output[0] of rank 1"));
  CHECK(verdict(leave("signal up", "wait up relaxed")) == race("output[0] of rank 1"));
}

TEST_CASE("relaxed signals and waits do not show that loads are over either") {
  const auto get = [](const std::string& leave) {
    return exchange("tb 0 {\n" + kEnter + "get output <- up.input\n" + leave + "}");
  };
  CHECK(verdict(get("sync\nsignal up\nwait up\n")) == "proved");
  CHECK(verdict(get("signal up\nwait up\n")) == race("input[0] of rank 1"));
  CHECK(verdict(get("sync\nsignal up relaxed\nwait up\n")) == race("input[0] of rank 1"));
  CHECK(verdict(get("sync\nsignal up\nwait up relaxed\n")) == race("input[0] of rank 1"));
}

TEST_CASE("a relaxed handshake publishes all that was done in earlier calls") {
  const auto slot = [](const std::string& enter) {
    return exchange("tb 0 {\n" + enter +
                    "put up.s[0] <- input\nsync\nsignal up\nwait up\nsync\n"
                    "copy output <- s[0]\n}");
  };
  CHECK(verdict(slot(kEnter)) == "proved");
  CHECK(verdict(slot("")) == race("s[0] of rank 1"));
}

TEST_CASE("no rank touches a peer's buffers before the peer is in") {
  CHECK(verdict(exchange("tb 0 {\nput up.output <- input\nsync\nsignal up\nwait up\n}")) ==
        race("output[0] of rank 0"));
  CHECK(verdict(exchange("tb 0 {\nget output <- up.input\nsync\nsignal up\nwait up\n}")) ==
        race("input[0] of rank 0"));
  // The threads must have met after the wait.
  CHECK(verdict(exchange(R"(tb 0 {
    signal down relaxed
    wait down relaxed
    put up.output <- input
    sync
    signal up
    wait up
  })")) == race("output[0] of rank 1"));
}

TEST_CASE("no rank leaves while a peer may still touch its buffers") {
  CHECK(verdict(exchange("tb 0 {\n" + kEnter + "get output <- up.input\n}")) ==
        race("input[0] of rank 0"));
}

TEST_CASE("scratch must not be filled again while a peer still reads it") {
  const auto calls = [](const std::string& leave) {
    return exchange("tb 0 {\nput up.s[0] <- input\nsync\nsignal up\nwait up\nsync\n" +
                    std::string("copy output <- s[0]\n") + leave + "}");
  };
  CHECK(verdict(calls("")) == race("s[0] of rank 1"));
  CHECK(verdict(calls("sync\nsignal down\nwait down\n")) == "proved");
  CHECK(verdict(calls("signal down\nwait down\n")) == race("s[0] of rank 0"));
}

TEST_CASE("a semaphore orders two blocks of a rank") {
  const auto blocks = [](const std::string& release, const std::string& acquire) {
    return exchange("tb 0 {\n" + kEnter + "put up.output <- input\n" + release + "}\ntb 1 {\n" +
                        acquire + "signal up\nwait up\n}",
                    "semaphore done");
  };
  CHECK(verdict(blocks("sync\nrelease done\n", "acquire done\nsync\n")) == "proved");
  CHECK(verdict(blocks("release done\n", "acquire done\nsync\n")) == race("output[0] of rank 1"));
  CHECK(verdict(blocks("sync\nrelease done\n", "acquire done\n")) == race("output[0] of rank 1"));
  CHECK(verdict(blocks("", "")) == race("output[0] of rank 0"));
}

TEST_CASE("of several releasers an acquire knows those without which it could not go on") {
  const auto three = [](const std::string& acquires, const std::string& initial) {
    return exchange("tb 0 {\n" + kEnter + R"(
        put up.output[0] <- input[0]
        sync
        release done
      }
      tb 1 {
        signal enter relaxed
        wait enter relaxed
        sync
        put up.output[1] <- input[1]
        sync
        release done
      }
      tb 2 {
      )" + acquires + "sync\nsignal up\nwait up\n}",
                    "semaphore done" + initial + "\nchannel enter = memory(1 - r)",
                    "sendrecv(ranks: 2, chunks: 2, shift: 1)");
  };
  CHECK(verdict(three("acquire done, done\n", "")) == "proved");
  CHECK(verdict(three("acquire done\nsync\nacquire done\n", "")) == "proved");
  // With one to spare, two acquires need only one of the releases.
  CHECK(verdict(three("acquire done, done\n", " = 1")).starts_with("race: race at output"));
}

TEST_CASE("several releasers: a release counts once a call, and what comes later is not known") {
  // The first acquire may have been released by either; only after both are both over.
  const std::string early = exchange("tb 0 {\n" + kEnter + R"(
      put up.output[0] <- input[0]
      sync
      release done
    }
    tb 1 {
      release done
    }
    tb 2 {
      acquire done
      sync
      signal up
      acquire done
      wait up
    })",
                                     "semaphore done", "sendrecv(ranks: 2, shift: 1)");
  CHECK(verdict(early) == race("output[0] of rank 0"));
}

TEST_CASE("a barrier orders the blocks that it names") {
  const auto blocks = [](const std::string& first, const std::string& rest) {
    return exchange("tb 0 {\n" + kEnter + "put up.output <- input\n" + first + "}\ntb 1 {\n" +
                    rest + "signal up\nwait up\n}\ntb 2 {\n" + rest + "}");
  };
  CHECK(verdict(blocks("barrier 0..3\n", "barrier 0..3\n")) == "proved");
  CHECK(verdict(blocks("", "barrier 1..3\n")) == race("output[0] of rank 0"));
}

TEST_CASE("the threads of a block are in no order without a sync") {
  const auto copies = [](const std::string& between) {
    return exchange("tb 0 {\n" + kEnter + "copy s[0] <- input\n" + between +
                    "put up.output <- s[0]\nsync\nsignal up\nwait up\n}");
  };
  CHECK(verdict(copies("sync\n")) == "proved");
  CHECK(verdict(copies("")) == race("s[0] of rank 0"));
}

TEST_CASE("equal parts are equal bytes; different ways to cut are not compared") {
  const auto parts = [](const std::string& second) {
    return exchange("tb 0 {\n" + kEnter + R"(
        copy s[0] <- input part: [0, 2]
        sync
        put up.output <- s[0] part: [0, 2]
        sync
        signal up
        wait up
      }
      tb 1 {
        signal enter relaxed
        wait enter relaxed
        copy s[0] <- input part: [1, 2]
        sync
        put up.output <- s[0] )" +
                        second + "\nsync\nsignal end\nwait end\n}",
                    "channel enter = memory(1 - r)\nchannel end = memory(1 - r)");
  };
  CHECK(verdict(parts("part: [1, 2]")) == "proved");
  CHECK(verdict(parts("part: [0, 2]")).starts_with("race: race at "));
  CHECK(verdict(parts("part: [1, 3]")).starts_with("race: race at "));
}

TEST_CASE("groups order what they hand on by barriers") {
  const auto group = [](const std::string& barrier) {
    return exchange(R"(tb 0 {
        signal down relaxed
        wait down relaxed
      }
      tb b in 0..3 { barrier 0..3 }
      group 0..3 { put up.output <- input }
      )" + barrier + "tb 0 { signal up ; wait up }");
  };
  CHECK(verdict(group("tb b in 0..3 { barrier 0..3 }\n")) == "proved");
  CHECK(verdict(group("tb b in 0..2 { barrier 0..2 }\n")) == race("output[0] of rank 0"));
}

TEST_CASE("rounds of a pipeline: each moves its own bytes, credits guard what is used again") {
  const auto rounds = [](const std::string& back, const std::string& slots) {
    return exchange("tb 0 { " + kEnter + R"(}
      pipeline unit: 1KiB {
        tb 0 {
          put up.s[0] <- input
          sync
          signal up
          wait up
          sync
          copy output <- s[0]
        }
      }
      tb 0 {
      )" + back + "}",
                    "", "sendrecv(ranks: 2, shift: 1)" + slots);
  };
  CHECK(verdict(rounds("sync\nsignal down\nwait down\n", "")) == "proved");
  // Nothing keeps the next call out of s, where there is a round at all.
  CHECK(verdict(exchange(R"(pipeline unit: 1KiB {
        tb 0 {
          put up.s[0] <- input
          sync
          signal up
          wait up
          sync
          copy output <- s[0]
        }
      })")) == race("s[0] of rank 1"));
}

TEST_CASE("a slot that is used again in every round needs credits from its reader") {
  const auto relay = [](const std::string& credit, const std::string& back) {
    return exchange("pipeline unit: 1KiB {\ntb 0 {\n" + credit + R"(
          put up.s[0] <- input
          sync
          signal up
        }
        tb 1 {
          wait up
          sync
          copy output <- s[0]
          sync
          )" + back + "\n}\n}\n",
                    "semaphore room = 1\nchannel back = memory(1 - r)");
  };
  const std::string granted = "}\ntb 2 {\nwait back\nsync\nrelease room\n";
  CHECK(verdict(relay("acquire room\nsync\n", "signal back\n" + granted)) == "proved");
  CHECK(verdict(relay("acquire room\nsync\n", "signal back relaxed\n" + granted)) ==
        race("s[0] of rank 0"));
  // A credit of the own rank says nothing of the peer's slot.
  CHECK(verdict(relay("acquire room\nsync\n", "release room")) == race("s[0] of rank 0"));
  CHECK(verdict(relay("", "")) == race("s[0] of rank 1"));
}

TEST_CASE("copies that come together again after too many calls are not decided") {
  const auto verdict_with = [](const std::string& b, const std::string& c) {
    return verdict(
        "program t\ncollective sendrecv(ranks: 2, shift: 1)\nrank r in 0..2 {\n"
        "  buffer a[1] packets: LL16, copies: 16\n  buffer b[1] packets: LL16, copies: " +
        b + "\n  buffer c[1] packets: LL16, copies: " + c +
        "\n  buffer x[2]\n  channel m = memory(1 - r)\n  tb 0 {\n    put_packets m.a <- input\n"
        "    unpack_packets x[0] <- a\n    sync\n    put_packets m.b <- x[0]\n"
        "    unpack_packets x[1] <- b\n    sync\n    put_packets m.c <- x[1]\n"
        "    unpack_packets output <- c\n    sync\n  }\n}\n");
  };
  CHECK(verdict_with("2", "3") == "proved");
  CHECK(verdict_with("15", "13") ==
        "undecided: not decided: with these copies, buffers use the same ones again after 3120 "
        "calls; up to 1024 are looked at");
}

TEST_CASE("counters with several users are not decided") {
  Program program = testing::as_written(exchange(R"(
    tb 0 { signal up ; wait up }
    tb 1 { signal down ; wait down }
  )",
                                                 "", "barrier(ranks: 2)"));
  CHECK(verdict(program) == "proved");
  // Block 1 waits at the end where block 0 waits.
  for (uint32_t r = 0; r < 2; ++r) {
    Op& op = program.ranks[r].ops[3];
    REQUIRE(op.kind == OpKind::wait);
    program.operands[op.operands] = program.operands[program.ranks[r].ops[1].operands];
  }
  CHECK(verdict(program) ==
        "undecided: not decided: several thread blocks wait at one end of a channel");
}

TEST_CASE("signals and waits of one end that order more and less are kept in turn by a meeting") {
  const auto turn = [](const std::string& between, const std::string& taken) {
    return exchange("tb 0 { " + kEnter + "put up.output <- input\nsync\nsignal up\n" + between +
                    "signal down, up relaxed\nwait up\n" + taken + "wait down, up relaxed\n}");
  };
  const std::string ahead =
      "undecided: not decided: threads of the block may do this before an op that comes ahead of "
      "it at the same end of a channel, of which one is 'relaxed' and one is not: put a 'sync' "
      "between them";
  CHECK(verdict(turn("sync\n", "")) == "proved");
  CHECK(verdict(turn("", "sync\n")) == ahead);
  const auto other_turn = [](const std::string& between) {
    return exchange("tb 0 { signal up relaxed\nwait up relaxed\n" + between +
                    "sync\nput up.output <- input\nsync\nsignal up\nwait up\n}");
  };
  CHECK(verdict(other_turn("")) == "proved");
  CHECK(verdict(other_turn("signal up\nwait up\n")) == ahead);
  CHECK(verdict(other_turn("signal up\nsync\nwait up\n")) == "proved");
}

TEST_CASE("what is taken of a count twice is kept in turn by a meeting") {
  const auto turn = [](const std::string& between) {
    return exchange("tb 0 { " + kEnter + "put up.output <- input\nsync\nsignal up\nwait up\n" +
                    between + "signal up\nwait up\n}");
  };
  const std::string overtaken =
      "undecided: not decided: a thread of the block may take this before an op that comes ahead "
      "of it has taken its own, and leave that waiting: put a 'sync' between them";
  CHECK(verdict(turn("sync\n")) == "proved");
  CHECK(verdict(turn("")) == overtaken);
  CHECK(verdict(turn("copy s[0] <- input[0]\nsignal up\nwait up\n")) == overtaken);
  // Nothing hangs on which thread takes which.
  CHECK(verdict(
            exchange("tb 0 { " + kEnter +
                     "put up.output <- input\nsync\nsignal up\nsignal up\nwait up\nwait up\n}")) ==
        "proved");
}

TEST_CASE("both ranks wait before either signals") {
  CHECK(verdict(exchange("tb 0 { " + kEnter + R"(
      put up.output <- input
      sync
      wait up
      signal up
    })"))
            .starts_with("stuck: "));
}

TEST_CASE("a switch touches a chunk of every member") {
  const auto broadcast = [](const std::string& enter, const std::string& leave) {
    return "program t\ncollective allgather(ranks: 2)\nrank r in 0..2 {\n"
           "  channel up = memory(1 - r)\n  channel sw = switch(0..2)\n  tb 0 {\n" +
           enter + "switch_broadcast sw.output[r] <- input\n" + leave + "  }\n}\n";
  };
  const std::string enter = "signal up relaxed\nwait up relaxed\nsync\n";
  CHECK(verdict(broadcast(enter, "sync\nsignal up\nwait up\n")) == "proved");
  CHECK(verdict(broadcast("", "sync\nsignal up\nwait up\n")) == race("output[1] of rank 0"));
  CHECK(verdict(broadcast(enter, "signal up\nwait up\n")) == race("output[0] of rank 1"));
  CHECK(verdict(broadcast(enter, "sync\nsignal up relaxed\nwait up relaxed\n")) ==
        race("output[0] of rank 1"));
}

TEST_CASE("a store of the same bits does not come back before what was there in between") {
  // One block stores input[0] at any time, which the other does twice. Either may be run first.
  const auto stores = [](const std::string& between, int one) {
    return exchange("tb " + std::to_string(one) + " { copy s[0] <- input[0] }\ntb " +
                        std::to_string(1 - one) + " {\ncopy s[0] <- input[0]\nsync\n" + between +
                        "copy s[0] <- input[0]\n" + kEnter + R"(
      put up.output[0] <- input[0]
      put up.output[1] <- input[1]
      sync
      signal up
      wait up
    })",
                    "", "sendrecv(ranks: 2, chunks: 2, shift: 1)");
  };
  for (const int one : {0, 1}) {
    const auto race_of = [&](const std::string& between) {
      return verdict(stores(between, one)).starts_with("race: race at s[0] of rank ");
    };
    CHECK(verdict(stores("", one)) == "proved");
    CHECK(race_of("copy s[0] <- input[1]\nsync\n"));
    CHECK(race_of("copy s[0] <- input[1]\nsync\ncopy s[1] <- s[0]\nsync\n"));
    // A load of those very bits in between gets them from either store, and is refused all the
    // same.
    CHECK(race_of("copy s[1] <- s[0]\nsync\n"));
  }
}

TEST_CASE("stores of a chunk that is shorter than what they move do not leave the same bits") {
  // Both store input chunk c from scratch, and with it what lies there beyond its end.
  const auto twice = [](const std::string& c) {
    return "program t\ncollective custom(ranks: 1, input: 2, output: 2, inplace: false)\n"
           "ensure output[c] at 0 = input[c] at 0 for c in 0..2\nrank 0 {\n  buffer s[3]\n"
           "  tb 0 {\n    copy output <- input\n    sync\n"
           "    copy s[1] <- input[" +
           c + "] ; copy s[2] <- input[" + c +
           "] ; sync\n"
           "    copy s[0] <- s[1] ; copy s[0] <- s[2] ; sync\n"
           "    copy output[" +
           c + "] <- s[0]\n  }\n}\n";
  };
  CHECK(verdict(twice("0")) == "proved");
  CHECK(verdict(twice("1")) == race("s[0] of rank 0"));
}

TEST_CASE("stores of one chunk to a slot of units, in two rounds, do not leave the same bits") {
  // Block 1 stores its round's piece after it has given the slot to a later round of block 0.
  const auto late = [](const std::string& last) {
    return "ir 1\nprogram t\ncollective custom(ranks: 1, input: 1, output: 1, inplace: false)\n"
           "ensure output[0] at 0 = input[0] at 0\nlaunch split: true\n"
           "rank 0 {\n  buffer s[1] units: 3\n  semaphore full = 0\n  semaphore free = 3\n"
           "  tb 0 {\n    pipeline unit: 16, loop: 0 {\n      acquire free\n      sync\n"
           "      copy s[0] <- input[0]\n      sync\n      release full\n    }\n  }\n"
           "  tb 1 {\n    pipeline unit: 16, loop: 0 {\n      acquire full\n      sync\n"
           "      copy output[0] <- s[0]\n      sync\n      release free\n" +
           last + "    }\n  }\n}\n";
  };
  CHECK(verdict(late("")) == "proved");
  CHECK(verdict(late("      sync\n      copy s[0] <- input[0]\n")) == race("s[0] of rank 0"));
}

TEST_CASE("parts of packets are cut by their units") {
  // LL128 has 120 bytes a unit, LL16 has 16: their halves end in different places.
  const auto halves = [](const std::string& format) {
    return "program t\ncollective sendrecv(ranks: 2, shift: 1)\nrank r in 0..2 {\n"
           "  buffer a[1] packets: LL16, copies: 2\n  buffer b[1] packets: " +
           format +
           ", copies: 2\n  channel up = memory(1 - r)\n"
           "  tb 0 {\n    put_packets up.a <- input\n    put_packets up.b <- input\n"
           "    unpack_packets output[0] <- a[0] part: [0, 2]\n    sync\n"
           "    unpack_packets output[0] <- b[0] part: [1, 2]\n  }\n}\n";
  };
  CHECK(verdict(halves("LL16")) == "proved");
  CHECK(verdict(halves("LL8")) == "proved");
  CHECK(verdict(halves("LL128")).starts_with("wrong-result: "));
}

TEST_CASE("a load does not stand for an earlier one that others hear of in another way") {
  // The sums share s[0] out alike, so that no thread overtakes itself; a copy is cut otherwise.
  const auto overwritten = [](const std::string& before) {
    return exchange("tb 0 {\n" + kEnter + "copy s[0] <- input\nsync\n" + before + R"(
      reduce s[2] <- s[0], s[3]
      reduce s[0] <- s[3], s[3]
      sync
      put up.output <- input
      sync
      signal up
      wait up
    })");
  };
  CHECK(verdict(overwritten("")) == "proved");
  CHECK(verdict(overwritten("copy s[1] <- s[0]\nsync\n")) == "proved");
  CHECK(verdict(overwritten("copy s[1] <- s[0]\n")) == race("s[0] of rank 0"));
}

TEST_CASE("sums of chunks that differ in length have ends that other threads may see to") {
  const auto sums = [](const std::string& first, const std::string& between,
                       const std::string& even) {
    return exchange("tb 0 {\n" + kEnter + "reduce s[0] <- s[1], " + first + "\n" + between + R"(
      reduce s[2] <- s[0], s[3]
      sync
      put up.output[0] <- input[0]
      put up.output[1] <- input[1]
      sync
      signal up
      wait up
    })",
                    "", "sendrecv(ranks: 2, chunks: 2, shift: 1" + even + ")");
  };
  CHECK(verdict(sums("s[3]", "", "")) == "proved");
  CHECK(verdict(sums("input[1]", "", "")) == race("s[0] of rank 0"));
  CHECK(verdict(sums("input[0]", "", "")) == race("s[0] of rank 0"));  // a little shorter, perhaps
  CHECK(verdict(sums("input[1]", "sync\n", "")) == "proved");
  CHECK(verdict(sums("input[1]", "", ", even: true")) == "proved");
}

TEST_CASE("a switch deals out what lies at multiples of its own") {
  const auto sums = [](const std::string& between) {
    return exchange("tb 0 {\n" + kEnter + "switch_reduce s[0] <- sw.s[1]\n" + between + R"(
      reduce s[2] <- s[0], s[3]
      sync
      put up.output <- input
      sync
      signal up
      wait up
    })",
                    "channel sw = switch(0..2)");
  };
  CHECK(verdict(sums("sync\n")) == "proved");
  CHECK(verdict(sums("")) == race("s[0] of rank 0"));
}

TEST_CASE("calls of other sizes have parts in other places") {
  // Each half of s[0] has a writer of its own, which hears from its own reader when it has been
  // read.
  const auto writer = [](const std::string& box, const std::string& part) {
    return "put " + box + ".s[0] <- input[0] part: [" + part + ", 2]\nsync\nsignal " + box +
           "\nwait " + box + "\n";
  };
  const auto halves = [&](uint32_t second) {
    return "program t\ncollective custom(ranks: 3, input: 1, output: 1, inplace: false)\n"
           "ensure output[0] at 0 = input[0] at 0\n"
           "rank 0 {\n  buffer s[1]\n  buffer t[1]\n  channel a = memory(1)\n"
           "  channel b = memory(" +
           std::to_string(second) +
           ")\n  tb 0 {\n copy output <- input\n wait a\n sync\n"
           "    copy t[0] <- s[0] part: [0, 2]\n sync\n signal a\n }\n"
           "  tb 1 {\n wait b\n sync\n"
           "    copy t[0] <- s[0] part: [1, 2]\n sync\n signal b\n }\n}\n"
           "rank 1 {\n  channel a = memory(0)\n" +
           (second == 1 ? "  channel b = memory(0)\n  tb 1 {\n" + writer("b", "1") + "}\n" : "") +
           "  tb 0 {\n" + writer("a", "0") + "}\n}\nrank 2 {\n" +
           (second == 2 ? "  channel b = memory(0)\n  tb 1 {\n" + writer("b", "1") + "}\n" : "") +
           "  tb 0 {\n sync\n }\n}\n";
  };
  CHECK(verdict(halves(1)) == "proved");  // all blocks of a rank meet when a call ends
  CHECK(verdict(halves(2)) == race("s[0] of rank 0"));
}

TEST_CASE("scratch that is accessed in the call of its rank only") {
  const auto in_call = [](const std::string& text) {
    CHECK(verdict(text) == "proved");
    return scratch_in_call(testing::as_written(text));
  };
  const auto put = [](const std::string& enter, const std::string& leave) {
    return exchange("tb 0 {\n" + enter +
                    "put up.s[0] <- input\nsync\nsignal up\nwait up\nsync\ncopy output <- s[0]\n" +
                    leave + "}");
  };
  const std::string answer = "sync\nsignal up\nwait up\n";
  CHECK(in_call(put(kEnter, "")));
  CHECK(in_call(put(kEnter, answer)));
  CHECK(!in_call(put("", answer)));  // the peer may have answered, and not have left its call
  CHECK(!in_call(reduction("s[1] copies: 2", kInCopies, false)));
  CHECK(!in_call(reduction("s[1] packets: LL16, copies: 2", kPackets, false)));
  CHECK(in_call(
      exchange("tb 0 {\n" + kEnter +
                   "copy s[0] <- input\nsync\nput out.output <- s[0]\nsignal out\nwait out\n"
                   "flush out\n}",
               "channel out = port(1 - r)")));
}

TEST_CASE("a switch stores where it loads, and another op has loaded before") {
  // Threads share the put in another way than the sum at the switch.
  const auto sum = [](const std::string& between, const std::string& to) {
    return R"(program t
collective custom(ranks: 2, input: 1, output: 1, inplace: false)
ensure output[0] at 0 = input[0] at 1
rank 0 {
  buffer u[1]
  channel sw = switch(0..2)
  channel c = memory(1)
  tb 0 {
    signal c
    wait c
  }
}
rank 1 {
  buffer u[1]
  channel sw = switch(0..2)
  channel c = memory(0)
  tb 0 {
    wait c
    sync
    copy u[0] <- input[0]
    put c.u[0] <- input[0]
    sync
    put c.output[0] <- u[0]
    )" + between +
           "\n    " + to + " <- sw.u[0]\n    sync\n    signal c\n  }\n}\n";
  };
  for (const std::string to : {"switch_reduce_broadcast sw.u[0]", "switch_reduce u[0]"}) {
    CHECK(verdict(sum("sync", to)) == "proved");
    CHECK(verdict(sum("", to)) == race("u[0] of rank 1"));
  }
}

}  // namespace
}  // namespace mscclc
