// What counts as a change, and how it reads.
#include "tools/diff/diff.h"

#include <catch2/catch.hpp>

#include "tests/helpers/programs/test_programs.h"
#include "tools/diff/block_diff.h"

using namespace mscclc;
using namespace mscclc::diff;
using namespace mscclc::testing;

namespace {

struct Numbers {
  uint32_t put_block = 0, copy_block = 1, channel = 0;
  const char *channel_name = "ch", *buffer_name = "inbox";
};

/// Two ranks: block `put_block` sends a chunk, block `copy_block` copies another. Another channel
/// is used for nothing.
TestProgram exchange(const Numbers& n = {}, bool flushed = false) {
  TestProgram t(2, 2);
  for (const uint32_t r : {0u, 1u}) {
    t.buffer(r, n.buffer_name, 1);
    for (const uint32_t c : {0u, 1u}) {
      t.channel(r, ChannelKind::memory, c == n.channel ? n.channel_name : "idle", {}, 1 - r, c);
    }
    t.op_in(r, n.put_block, OpKind::put, {far(n.channel, 2, 0)}, {local(kInput, 0)});
    if (flushed) t.op_in(r, n.put_block, OpKind::sync, {});
    t.op_in(r, n.put_block, OpKind::signal, {end_of(n.channel)});
    t.op_in(r, n.put_block, OpKind::wait, {end_of(n.channel)});
    t.op_in(r, n.copy_block, OpKind::copy, {local(kOutput, 1)}, {local(kInput, 1)});
  }
  return t;
}

std::string between(const TestProgram& a, const TestProgram& b) {
  return differences({a.program, {}}, {b.program, {}});
}

}  // namespace

TEST_CASE("diff: numbers and names of blocks, channels and scratch are no change") {
  const TestProgram a = exchange();
  CHECK(between(a, a) == "");
  const TestProgram b = exchange({1, 0, 1, "other", "slots"});
  CHECK(between(a, b) == "");
}

TEST_CASE("diff: what is predicted shows beside a change, and is none") {
  const auto takes = [](const char* us) {
    return [us] { return std::vector<Fact>{{"time", us}}; };
  };
  const TestProgram a = exchange(), b = exchange({}, true);
  CHECK(differences({a.program, {}, takes("1 us")}, {a.program, {}, takes("2 us")}) == "");
  CHECK(differences({a.program, {}, takes("1 us")}, {b.program, {}, takes("2 us")})
            .starts_with("time:\n  - 1 us\n  + 2 us\nranks 0..2"));
  CHECK(differences({a.program, {}, takes("1 us")}, {b.program, {}, takes("1 us")})
            .starts_with("ranks 0..2"));
}

TEST_CASE("diff: ops, once for ranks that change in the same way") {
  CHECK(between(exchange(), exchange({}, true)) ==
        "ranks 0..2, as rank 0:\n"
        "  tb 0:\n"
        "      put ch.inbox[0] <- input[0]\n"
        "    + sync\n"
        "      signal ch\n");
}

TEST_CASE("diff: what is not shown of a long block counts, too") {
  TestProgram a(1, 2), b(1, 2);
  for (const uint32_t block : {0u, 1u}) {
    for (TestProgram* t : {&a, &b}) {
      t->op_in(0, block, OpKind::copy, {local(kOutput, 0)}, {local(kInput, 0)});
    }
    for (int i = 0; i < 70; ++i) b.op_in(0, block, OpKind::sync, {});
  }
  CHECK(between(a, b).find("change alike") != std::string::npos);
  b.op_in(0, 1, OpKind::copy, {local(kOutput, 1)}, {local(kInput, 1)});
  CHECK(between(a, b).find("change alike") == std::string::npos);
}

TEST_CASE("diff: blocks, scratch, channels and semaphores that are new") {
  const TestProgram a = exchange();
  TestProgram b = exchange();
  b.buffer(1, "more", 3, PacketFormat::LL16);
  b.semaphore(1, "done", {}, 2);
  b.op_in(1, 2, OpKind::acquire, {id(0)});
  CHECK(between(a, b) ==
        "rank 1:\n"
        "  + scratch buffer more[3] packets: LL16\n"
        "  + semaphore done = 2\n"
        "  + tb 2:\n"
        "    + acquire done\n");
  CHECK(between(b, a) ==
        "rank 1:\n"
        "  - scratch buffer more[3] packets: LL16\n"
        "  - semaphore done = 2\n"
        "  - tb 2:\n"
        "    - acquire done\n");
}

TEST_CASE("diff: blocks that change alike show once, and pipelines by their units") {
  const auto program = [](uint64_t unit, bool synced) {
    TestProgram t(1, 3);
    t.program.loops.push_back({unit, 1});
    for (const uint32_t b : {0u, 1u, 2u}) {
      t.op_in(0, b, OpKind::copy, {local(kOutput, b)}, {local(kInput, b)}).loop = 0;
      if (synced) t.op_in(0, b, OpKind::sync, {}).loop = 0;
    }
    return t;
  };
  CHECK(between(program(1024, false), program(2048, true)) ==
        "rank 0:\n"
        "  - pipeline unit: 1KiB (and 2 alike)\n"
        "  + pipeline unit: 2KiB (and 2 alike)\n"
        "  tb 0, and 2 that change alike, to tb 2:\n"
        "      copy output[0] <- input[0]\n"
        "    + sync\n");
}

TEST_CASE("diff: the head and facts") {
  TestProgram a = exchange(), b = exchange();
  b.program.launch.threads = 512;
  b.program.description = "does not count";
  const std::string text = differences({a.program, {{"time", "5 us"}, {"proved", "in place"}}},
                                       {b.program, {{"time", "4 us"}, {"proved", "in place"}}});
  CHECK(text ==
        "+ launch     threads: 512\n"
        "time:\n"
        "  - 5 us\n"
        "  + 4 us\n");
}

TEST_CASE("diff: the same ops through other channels are a change") {
  // Block 0 signals, and waits through the same channel or the other.
  const auto program = [](uint32_t waits) {
    TestProgram t(2, 1);
    for (const uint32_t r : {0u, 1u}) {
      for (const uint32_t c : {0u, 1u}) t.channel(r, ChannelKind::memory, "ch", {c}, 1 - r, c);
      t.op_in(r, 0, OpKind::signal, {end_of(0)});
      t.op_in(r, 0, OpKind::signal, {end_of(1)});
      t.op_in(r, 0, OpKind::wait, {end_of(waits)});
      t.op_in(r, 0, OpKind::wait, {end_of(0)});
    }
    return t;
  };
  CHECK(between(program(0), program(0)) == "");
  CHECK(between(program(0), program(1)) ==
        "ranks 0..2, as rank 0:\n"
        "  the same ops, through other channels, scratch buffers or semaphores\n");
}

TEST_CASE("diff: other numbers of ranks show in the head") {
  CHECK_THAT(between(TestProgram(2, 1), TestProgram(3, 1)), Catch::Contains("+ collective"));
}

TEST_CASE("diff: edits of two lists are the fewest") {
  const std::vector<uint64_t> a = {1, 2, 3, 4, 5}, b = {1, 3, 9, 4, 5};
  std::string signs;
  for (const Edit& edit : edits(a, b)) signs += " -+"[edit.kind];
  CHECK(signs == " - +  ");
  CHECK(edits({}, {}).empty());
  CHECK(edits({}, {7}).size() == 1);
  CHECK(shared({1, 1, 2}, {1, 2, 2}) == 2);
}
