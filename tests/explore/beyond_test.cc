// Stores of the same bits, and what lies beyond the end of the data: the explorer on programs that
// are proved, and on those that lack what makes them right.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "passes/prove/prove_test_text.h"
#include "tests/explore/explore.h"

namespace mscclc {
namespace {

using testing::as_written;
using testing::race;
using testing::verdict;

Verdict explored(const Program& program, uint64_t bytes) {
  const Exploration found =
      explore(program, {.calls = 3, .bytes = bytes, .same_bits = true, .reduced = true});
  UNSCOPED_INFO(bytes << " bytes: " << found.reason);
  return found.verdict;
}

/// Rank 1 reads the input of rank 0 twice into one chunk; rank 0 hears of it by packets made of it.
Program read_twice(const std::string& second, const std::string& sent) {
  return as_written(fmt::format(R"(program t
collective custom(ranks: 2, input: 1, output: 1, inplace: false)
ensure output[0] at 0 = input[0] at 0
rank 0 {{
  buffer k[1] packets: LL16, copies: 2
  channel c = memory(1)
  tb 0 {{
    signal c relaxed
    unpack_packets output[0] <- k[0]
  }}
}}
rank 1 {{
  buffer u[1]
  buffer v[1]
  channel c = memory(0)
  tb 0 {{
    wait c relaxed
    sync
    get u[0] <- c.input[0]
    get {}[0] <- c.input[0]
    sync
    put_packets c.k[0] <- {}[0]
  }}
}}
)",
                                second, sent));
}

TEST_CASE("what is made of a chunk that was stored twice shows that both sources were read") {
  const Program twice = read_twice("u", "u"), apart = read_twice("v", "v");
  CHECK(verdict(twice) == "proved");
  CHECK(explored(twice, 16) == Verdict::right);
  CHECK(verdict(apart) == race("input[0] of rank 0"));
  CHECK(explored(apart, 16) == Verdict::race);
}

/// Two ranks store in both what rank 0 has sent, in no order.
Program broadcast_twice(const std::string& by_rank_1) {
  return as_written(fmt::format(R"(program t
collective custom(ranks: 2, input: 1, output: 1, inplace: false)
ensure output[0] at 1 = input[0] at 0
launch align: 64
rank 0 {{
  buffer t[1]
  buffer u[1]
  channel sw = switch(0..2)
  channel c = memory(1)
  tb 0 {{
    signal c
    wait c
    sync
    switch_broadcast sw.t[0] <- input[0]
    sync
    signal c
    switch_broadcast sw.u[0] <- t[0]
    sync
    signal c
    wait c
  }}
}}
rank 1 {{
  buffer t[1]
  buffer u[1]
  channel sw = switch(0..2)
  channel c = memory(0)
  tb 0 {{
    signal c
    wait c
    sync
    wait c
    sync
    switch_broadcast sw.u[0] <- {}[0]
    copy output[0] <- t[0]
    sync
    wait c
    signal c
  }}
}}
)",
                                by_rank_1));
}

TEST_CASE("what fills up the last granule of scratch may be stored in any order") {
  const Program same = broadcast_twice("t"), other = broadcast_twice("input");
  CHECK(verdict(same) == "proved");
  CHECK(verdict(other).starts_with("race"));
  for (const uint64_t bytes : {20, 64}) {
    CHECK(explored(same, bytes) == Verdict::right);
    CHECK(explored(other, bytes) == Verdict::race);
  }
}

/// Two ranks store a sum of two chunks in rank 0, in no order; the second chunk may be shorter than
/// the packets that are added to it.
Program added_twice() {
  return as_written(R"(program t
collective custom(ranks: 2, input: 2, output: 2, inplace: false)
ensure output[i] at 0 = reduce(input[i] at p for p in 0..2) for i in 0..2
rank 0 {
  buffer s[2]
  buffer u[2]
  buffer k[2] packets: LL8, copies: 2
  channel c = memory(1)
  tb 0 {
    signal c
    wait c
    sync
    copy u[0..2] <- input[0..2]
    sync
    put_packets c.k[0..2] <- u[0..2]
    reduce_packets s[0..2] <- k[0..2], input[0..2]
    wait c
    sync
    copy output[0..2] <- s[0..2]
    sync
    signal c
  }
}
rank 1 {
  buffer s[2]
  buffer u[2]
  buffer k[2] packets: LL8, copies: 2
  channel c = memory(0)
  tb 0 {
    signal c
    wait c
    sync
    put_packets c.k[0..2] <- input[0..2]
    reduce_packets_put s[0..2], c.s[0..2] <- k[0..2], input[0..2]
    sync
    signal c
    wait c
  }
}
)");
}

TEST_CASE("what lies beyond a shorter term may be stored in any order") {
  const Program same = added_twice();
  CHECK(verdict(same) == "proved");
  for (const uint64_t bytes : {32, 130}) CHECK(explored(same, bytes) == Verdict::right);
}

/// Rank 0 may send again when packets have come back that are made of its own.
Program answered(const std::string& answer) {
  return as_written(fmt::format(R"(program t
collective custom(ranks: 2, input: 1, output: 1, inplace: either)
ensure output[0] at 1 = input[0] at 0
rank 0 {{
  buffer s[1]
  buffer k[1] packets: LL128, copies: 2
  channel c = memory(1)
  tb 0 {{
    put_packets c.l[0] <- input[0]
    unpack_packets s[0] <- k[0]
  }}
}}
rank 1 {{
  buffer s[1]
  buffer l[1] packets: LL128
  channel c = memory(0)
  tb 0 {{
    unpack_packets output[0] <- l[0]
    sync
    put_packets c.k[0] <- {}[0]
  }}
}}
)",
                                answer));
}

TEST_CASE("packets without data depend on those that were polled before") {
  const Program all = answered("output"), other = answered("s");
  CHECK(verdict(all) == "proved");
  CHECK(verdict(other) != "proved");
  for (const uint64_t bytes : {112, 120}) {  // 120 bytes of data are one line, of two that are sent
    CHECK(explored(all, bytes) == Verdict::right);
    CHECK(explored(other, bytes) == Verdict::race);
  }
}

/// Rank 1 may send again when packets have come back that are made of its own, by way of chunk 1,
/// which is shorter than packets are sent for.
Program answered_by_short_chunk(const std::string& answer) {
  return as_written(fmt::format(R"(program t
collective custom(ranks: 2, input: 2, output: 2, inplace: false)
ensure output[1] at 0 = input[1] at 1
rank 0 {{
  buffer k[1] packets: LL16
  channel c = memory(1)
  semaphore e = 0
  tb 0 {{
    unpack_packets output[1] <- k[0]
    sync
    release e
  }}
  tb 1 {{
    acquire e
    sync
    put_packets c.l[0] <- {}[1]
  }}
}}
rank 1 {{
  buffer s[1]
  buffer l[1] packets: LL16, copies: 2
  channel c = memory(0)
  tb 0 {{
    put_packets c.k[0] <- input[1]
    unpack_packets s[0] <- l[0]
  }}
}}
)",
                                answer));
}

TEST_CASE("packets beyond the end of a shorter chunk depend on those that were polled before") {
  const Program all = answered_by_short_chunk("output"), other = answered_by_short_chunk("input");
  CHECK(verdict(all) == "proved");
  CHECK(verdict(other) == race("k[0] of rank 0"));
  // Chunk 1 has nothing of 2 bytes, 1 of 33 and 24 of 72; packets are one, two and three units.
  for (const uint64_t bytes : {2, 33, 72}) CHECK(explored(all, bytes) == Verdict::right);
  for (const uint64_t bytes : {33, 72}) CHECK(explored(other, bytes) == Verdict::race);
}

/// Rank 0 reads the input of rank 1 and answers with packets of a chunk that it made of that, and
/// has stored over since; rank 1 then stores in its input.
Program stored_over(const std::string& since) {
  return as_written(fmt::format(R"(program t
collective custom(ranks: 2, input: 1, output: 1, inplace: true)
ensure output[0] at 1 = input[0] at 0
rank 0 {{
  buffer t[1]
  channel c = memory(1)
  tb 0 {{
    wait c relaxed
    sync
    get t[0] <- c.input[0]
    sync
    {}
    sync
    put_packets c.k[0] <- t[0]
    put_packets c.m[0] <- input[0]
  }}
}}
rank 1 {{
  buffer k[1] packets: LL16, copies: 2
  buffer m[1] packets: LL16, copies: 2
  buffer s[1]
  channel c = memory(0)
  tb 0 {{
    signal c relaxed
    unpack_packets s[0] <- k[0]
    sync
    unpack_packets output[0] <- m[0]
  }}
}}
)",
                                since));
}

TEST_CASE("what was stored over, if by several ops, is not what packets are made of") {
  const auto both = [](const std::string& since) {
    const Program program = stored_over(since);
    return std::pair{
        verdict(program),
        explore(program,
                {.calls = 2, .in_place = true, .bytes = 32, .same_bits = true, .reduced = true})
            .verdict};
  };
  CHECK(both("") == std::pair{std::string("proved"), Verdict::right});
  const std::pair raced{race("output[0] of rank 1 in place"), Verdict::race};
  CHECK(both("copy t[0] <- input[0]") == raced);
  CHECK(both("copy t[0] <- input[0] part: [0, 2]\ncopy t[0] <- input[0] part: [1, 2]") == raced);
  CHECK(both("copy t[0] <- input[0] part: [1, 2]") == raced);
}

}  // namespace
}  // namespace mscclc
