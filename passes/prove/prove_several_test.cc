// Packets of one call that several stores put into one slot: a poll may see any of them (lemma
// O15). And stores of the same bits: of one call, and of data that is known (lemma O7).
#include "passes/prove/prove_test_text.h"

namespace mscclc {
namespace {

using testing::race;
using testing::verdict;

TEST_CASE("packets that two ranks put do not show what one of them has read") {
  // Rank 0 has seen the packets of rank 1 or of rank 2, and overwrites what rank 2 reads.
  const auto puts = [](const std::string& second) {
    return R"(program t
collective custom(ranks: 3, input: 2, output: 1)
ensure output[0] at 0 = input[0] at 0
rank 0 {
  buffer s[1] packets: LL16
  buffer x[1]
  channel a = memory(1)
  channel b = memory(2)
  tb 0 {
    copy output[0] <- input[0]
    put a.w[0] <- input[0]
    put b.w[0] <- input[0]
    sync
    signal a
    signal b
    wait a relaxed
    wait b relaxed
    unpack_packets x[0] <- s[0]
    sync
    put b.w[0] <- input[1]
    wait a
    wait b
  }
}
rank 1 {
  buffer w[1]
  channel a = memory(0)
  channel c = memory(2)
  tb 0 {
    wait a
    wait c relaxed
    sync
    )" + second +
           R"(
    signal a relaxed
    sync
    signal a
  }
}
rank 2 {
  buffer w[1]
  channel b = memory(0)
  channel c = memory(1)
  tb 0 {
    wait b
    sync
    put_packets b.s[0] <- w[0]
    signal c relaxed
    signal b relaxed
    sync
    signal b
  }
}
)";
  };
  CHECK(verdict(puts("")) == "proved");
  CHECK(verdict(puts("put_packets a.s[0] <- w[0]")) == race("w[0] of rank 2"));
}

// Block 1 may take what rank 1 puts; then block 0 waits forever.
TEST_CASE("the taker of a second packet of a sentinel slot comes after that of the first") {
  const auto takes = [](const std::string& after, const std::string& before) {
    return R"(program t
collective custom(ranks: 2, input: 1, output: 1, inplace: false)
ensure output[0] at 0 = input[0] at 0
rank 0 {
  buffer w[1]
  buffer s[1] packets: sentinel, copies: 2
  channel a = memory(1)
  semaphore taken = 0
  tb 0 {
    put a.w[0] <- input[0]
    sync
    signal a
    unpack_packets w[0] <- s[0]
    )" + after +
           R"(
    copy_packets s[0] <- input[0]
    sync
    signal a
  }
  tb 1 {
    )" + before +
           R"(
    unpack_packets output[0] <- s[0]
  }
}
rank 1 {
  buffer w[1]
  channel a = memory(0)
  tb 0 {
    wait a
    sync
    put_packets a.s[0] <- w[0]
    wait a
  }
}
)";
  };
  CHECK(verdict(takes("", "")) == race("s[0] of rank 0"));
  CHECK(verdict(takes("sync ; release taken", "acquire taken ; sync")) == "proved");
}

TEST_CASE("packets that two blocks of a rank put do not show what one of them has read") {
  const auto puts = [](const std::string& second) {
    return R"(program t
collective custom(ranks: 2, input: 2, output: 1)
ensure output[0] at 0 = input[0] at 0
rank 0 {
  buffer s[1] packets: LL16
  buffer x[1]
  channel a = memory(1)
  channel d = memory(1)
  tb 0 {
    copy output[0] <- input[0]
    put a.w[0] <- input[0]
    put a.v[0] <- input[0]
    sync
    signal a
    signal d
    wait a relaxed
    unpack_packets x[0] <- s[0]
    sync
    put a.w[0] <- input[1]
    wait a
    wait d
  }
}
rank 1 {
  buffer w[1]
  buffer v[1]
  channel a = memory(0)
  channel d = memory(0)
  semaphore q
  tb 0 {
    wait a
    sync
    put_packets a.s[0] <- w[0]
    acquire q
    signal a relaxed
    sync
    signal a
  }
  tb 1 {
    wait d
    sync
    )" + second +
           R"(
    release q
    sync
    signal d
  }
}
)";
  };
  CHECK(verdict(puts("")) == "proved");
  CHECK(verdict(puts("put_packets d.s[0] <- v[0]")) == race("w[0] of rank 1"));
}

TEST_CASE("packets that a block puts again in parts do not show what the first have read") {
  // Other threads put them, which do not wait for those that read w.
  const auto puts = [](const std::string& again) {
    return R"(program t
collective custom(ranks: 2, input: 2, output: 1)
ensure output[0] at 0 = input[0] at 0
rank 0 {
  buffer s[1] packets: LL16
  buffer x[1]
  channel a = memory(1)
  tb 0 {
    copy output[0] <- input[0]
    put a.w[0] <- input[0]
    put a.v[0] <- input[0]
    sync
    signal a
    unpack_packets x[0] <- s[0]
    sync
    put a.w[0] <- input[1]
    wait a
  }
}
rank 1 {
  buffer w[1]
  buffer v[1]
  channel a = memory(0)
  tb 0 {
    wait a
    sync
    put_packets a.s[0] <- w[0]
    )" + again +
           R"(
    sync
    signal a
  }
}
)";
  };
  CHECK(verdict(puts("")) == "proved");
  CHECK(verdict(puts("put_packets a.s[0] <- v[0] part: [0, 2]\n"
                     "put_packets a.s[0] <- v[0] part: [1, 2]")) == race("w[0] of rank 1"));
}

/// Rank 2 sends u to rank 0 by a port, and fills it again in the next call. `second` is what rank 1
/// puts first.
std::string by_port(const std::string& second) {
  return R"(program t
collective custom(ranks: 3, input: 1, output: 1)
ensure output[0] at 0 = input[0] at 2
rank 0 {
  buffer s[1] packets: LL16
  buffer x[1]
  channel a = memory(1)
  channel b = port(2)
  channel h = memory(2)
  tb 0 {
    signal a
    signal h
    wait h relaxed
    wait a relaxed
    unpack_packets output[0] <- s[0]
    sync
    signal h
    wait b
    wait a
  }
}
rank 1 {
  buffer v[1]
  channel a = memory(0)
  channel c = memory(2)
  tb 0 {
    wait a
    wait c
    sync
    )" + second +
         R"(
    signal c relaxed
    signal a relaxed
    sync
    signal a
  }
}
rank 2 {
  buffer u[1] packets: LL16
  channel b = port(0)
  channel h = memory(0)
  channel c = memory(1)
  tb 0 {
    copy_packets u[0] <- input[0]
    wait h
    sync
    put c.v[0] <- input[0]
    sync
    signal c
    wait c relaxed
    put_packets b.s[0] <- u[0]
    signal h relaxed
    signal b
    wait h
  }
}
)";
}

TEST_CASE("packets that a port puts where others are do not show that it has read its source") {
  CHECK(verdict(by_port("")) == "proved");
  CHECK(verdict(by_port("put_packets a.s[0] <- v[0]")) == race("u[0] of rank 2"));
}

TEST_CASE("data that is not known is never the same bits") {
  const auto stores = [](const std::string& source) {
    return "program t\ncollective sendrecv(ranks: 1, shift: 0, inplace: false)\nrank 0 {\n"
           "  buffer s[1]\n  buffer junk[1]\n  tb 0 { copy output <- input }\n"
           "  tb 1 { copy s[0] <- " +
           source + " }\n  tb 2 { copy s[0] <- " + source + " }\n}\n";
  };
  CHECK(verdict(stores("input[0]")) == "proved");
  CHECK(verdict(stores("junk[0]")) == race("s[0] of rank 0"));
}

TEST_CASE("packets of data that is not known are not the same again") {
  const auto twice = [](const std::string& source) {
    return "program t\ncollective custom(ranks: 2, input: 1, output: 1)\nrank 0 {\n"
           "  buffer s[1] packets: LL16, copies: 2\n  buffer x[1]\n  channel a = memory(1)\n"
           "  tb 0 {\n    unpack_packets x[0] <- s[0]\n    sync\n    signal a\n  }\n}\n"
           "rank 1 {\n  buffer w[1]\n  channel a = memory(0)\n  tb 0 {\n"
           "    put_packets a.s[0] <- " +
           source + "\n    put_packets a.s[0] <- " + source + "\n    wait a\n  }\n}\n";
  };
  CHECK(verdict(twice("input[0]")) == "proved");
  CHECK(verdict(twice("w[0]")).starts_with("slot-twice: "));
}

TEST_CASE("packets of two calls are not the same bits, as their flags differ") {
  // Rank 2 puts when the slot of the call before has been read; rank 1 puts at any time.
  CHECK(verdict(R"(program t
collective custom(ranks: 3, input: 1, output: 1)
ensure output[0] at 0 = input[0] at 0
rank 0 {
  buffer s[1] packets: LL16
  buffer x[1]
  channel a = memory(1)
  channel b = memory(2)
  tb 0 {
    copy output[0] <- input[0]
    unpack_packets x[0] <- s[0]
    sync
    signal a
    signal b
  }
}
rank 1 {
  buffer junk[1]
  channel a = memory(0)
  tb 0 {
    put_packets a.s[0] <- junk[0]
    wait a
  }
}
rank 2 {
  buffer junk[1]
  channel b = memory(0)
  tb 0 {
    wait b
    put_packets b.s[0] <- junk[0]
  }
}
)") == race("s[0] of rank 0"));
}

TEST_CASE("stores of the same bits in two calls may come in one order only") {
  // What rank 0 puts late into t rank 1 puts there in the next call, and rank 2's input in later
  // ones.
  const auto stores = [](const std::string& end) {
    return R"(program t
collective custom(ranks: 3, input: 1, output: 1)
ensure output[0] at 0 = input[0] at 0
rank 0 {
  buffer box[1]
  buffer y[1]
  channel c = memory(1)
  channel a = memory(2)
  tb 0 {
    copy output[0] <- input[0]
    wait a
    wait c
    sync
    copy y[0] <- box[0]
    sync
    signal a
    put c.t[0] <- y[0]
    )" + end +
           R"(
  }
}
rank 1 {
  buffer old[1]
  buffer t[1]
  channel c = memory(0)
  channel b = memory(2)
  tb 0 {
    copy t[0] <- old[0]
    sync
    signal c
    signal b
    wait b
    sync
    )" + (end.empty() ? "" : "wait c") +
           R"(
  }
}
rank 2 {
  channel a = memory(0)
  channel b = memory(1)
  tb 0 {
    wait b
    sync
    put b.old[0] <- input[0]
    put a.box[0] <- input[0]
    sync
    signal a
    signal b
    wait a
    sync
  }
}
)";
  };
  CHECK(verdict(stores("sync\nsignal c")) == "proved");
  CHECK(verdict(stores("")) == race("t[0] of rank 1"));
}

TEST_CASE("what has been through sentinels has other bits, whatever numbers a proof draws") {
  // It has lost a -0.0. What is different is one bit of what stands for the value.
  const Program program = testing::as_written(R"(program t
collective allgather(ranks: 1, chunks: 1, inplace: false)
select dtypes: [f32]
rank 0 {
  buffer k[1] packets: sentinel
  tb 0 {
    copy output[0] <- input[0]
    copy_packets k[0] <- input[0]
    unpack_packets output[0] <- k[0]
  }
}
)");
  for (int draw = 0; draw < 100; ++draw) CHECK(verdict(program) == race("output[0] of rank 0"));
}

}  // namespace
}  // namespace mscclc
