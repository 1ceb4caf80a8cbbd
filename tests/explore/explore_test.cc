// The explorer on plans whose verdict is known.
#include "tests/explore/explore.h"

#include <catch2/catch.hpp>

#include "executor/host/test_plans.h"

namespace mscclc {
namespace {

using namespace testing;

/// Two ranks swap their input over ports, and flush.
TestProgram exchange_by_port() {
  TestProgram t = exchange(ChannelKind::port);
  for (uint32_t r = 0; r < 2; ++r) add_op(t, r, 0, OpKind::flush, {end_of(0)});
  return t;
}

void check(const Program& program, Verdict expected, const ExploreOptions& options = {}) {
  const Exploration found = explore(program, options);
  INFO(name(found.verdict) << ": " << found.reason << ", " << found.states << " states");
  CHECK(found.verdict == expected);
}

TEST_CASE("right plans") {
  check(exchange().program, Verdict::right);
  check(exchange_by_port().program, Verdict::right);
  for (const PacketFormat format : {PacketFormat::LL16, PacketFormat::sentinel}) {
    check(one_shot(2, 1, format).program, Verdict::right, {.calls = 3});
    check(one_shot(3, 1, format).program, Verdict::right);
    check(one_shot(2, 2, format).program, Verdict::right);
  }
}

TEST_CASE("in place") {
  check(one_shot(2, 1, PacketFormat::LL16).program, Verdict::right, {.in_place = true});
}

TEST_CASE("no opening handshake") {
  TestProgram t = exchange();
  for (uint32_t r = 0; r < 2; ++r) {
    for (int i = 0; i < 3; ++i) erase(t.program, r, 0);
  }
  check(t.program, Verdict::race);
}

TEST_CASE("relaxed closing handshake") {
  TestProgram t = exchange();
  t.program.ranks[0].ops[5].relaxed = true;
  check(t.program, Verdict::race);
  t = exchange();
  t.program.ranks[0].ops[6].relaxed = true;
  check(t.program, Verdict::race);
}

TEST_CASE("no sync before the signal, none after the wait") {
  for (const uint32_t op : {4, 2}) {
    TestProgram t = exchange();
    erase(t.program, 0, op);
    check(t.program, Verdict::race);
  }
}

TEST_CASE("no flush before the caller changes the source") {
  TestProgram t = exchange_by_port();
  erase(t.program, 0, 7);
  check(t.program, Verdict::wrong_data);
}

TEST_CASE("a lost signal") {
  TestProgram t = exchange();
  erase(t.program, 0, 5);
  check(t.program, Verdict::deadlock);
}

TEST_CASE("both wait before either signals") {
  TestProgram t = exchange();
  for (uint32_t r = 0; r < 2; ++r) std::swap(t.program.ranks[r].ops[0], t.program.ranks[r].ops[1]);
  check(t.program, Verdict::deadlock);
}

TEST_CASE("packets in one copy of their slots") {
  check(one_shot(2, 1, PacketFormat::LL16, 1).program, Verdict::race);
  check(one_shot(2, 1, PacketFormat::sentinel, 1).program, Verdict::race);
}

TEST_CASE("the wrong chunk") {
  TestProgram t = one_shot(2, 2, PacketFormat::LL16);
  for (Op& op : t.program.ranks[0].ops) {
    if (op.kind == OpKind::reduce_packets) {
      t.program.operands[op.operands + 1].first ^= 1;  // the own contribution
    }
  }
  check(t.program, Verdict::wrong_data);
}

TEST_CASE("two ops of a block that cut a chunk otherwise need a sync") {
  TestProgram t(1, 2);
  t.program.contract.in_place = InPlace::no;
  const uint32_t a = t.buffer(0, "a", 3);
  add_op(t, 0, 0, OpKind::copy, {local(a, 0, 2)}, {local(kInput, 0, 2)});
  add_op(t, 0, 0, OpKind::copy, {local(kOutput, 0)}, {local(a, 0)});
  check(t.program, Verdict::wrong_data);  // output[1] has not been written
  add_op(t, 0, 0, OpKind::copy, {local(kOutput, 1)}, {local(a, 1)});
  check(t.program, Verdict::race);
  Op sync;
  sync.block = 0;
  t.program.ranks[0].ops.insert(t.program.ranks[0].ops.begin() + 1, sync);
  check(t.program, Verdict::right);
}

TEST_CASE("too many states, and pipelines, are no verdict") {
  check(one_shot(3, 1, PacketFormat::LL16).program, Verdict::too_large, {.most_states = 10});
  TestProgram t = exchange();
  t.program.loops.push_back({64, 1});
  t.program.ranks[0].ops[3].loop = 0;
  check(t.program, Verdict::unsupported);
}

}  // namespace
}  // namespace mscclc
