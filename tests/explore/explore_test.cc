// The explorer on plans whose verdict is known.
#include "tests/explore/explore.h"

#include <catch2/catch.hpp>

#include "executor/testing/test_plans.h"

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
    check(one_shot(3, 1, format).program, Verdict::right, {.reduced = true});
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

TEST_CASE("threads that have not met signal, and wait, in any order") {
  const TestProgram swap = exchange();
  const Op sync = swap.program.ranks[0].ops[4], signal = swap.program.ranks[0].ops[5];
  const Op wait = swap.program.ranks[1].ops[6];
  for (const bool met : {true, false}) {
    // The relaxed signal may be the one that rank 1 waits for.
    TestProgram t = swap;
    std::vector<Op>* ops = &t.program.ranks[0].ops;
    ops->insert(ops->begin() + 6, signal)->relaxed = true;
    if (met) ops->insert(ops->begin() + 6, sync);
    t.program.ranks[1].ops.push_back(wait);
    t.program.ranks[1].ops.back().relaxed = true;
    check(t.program, met ? Verdict::right : Verdict::race);
    // The relaxed wait may take the signal that publishes.
    t = swap;
    ops = &t.program.ranks[0].ops;
    ops->insert(ops->begin() + 5, sync);
    ops->insert(ops->begin() + 5, signal)->relaxed = true;
    ops = &t.program.ranks[1].ops;
    if (met) ops->insert(ops->begin() + 6, sync);
    ops->insert(ops->begin() + 6, wait)->relaxed = true;
    check(t.program, met ? Verdict::right : Verdict::race);
  }
}

TEST_CASE("a wait that takes what an earlier one waits for") {
  for (const bool met : {true, false}) {
    TestProgram t = exchange();
    std::vector<Op>*ops = &t.program.ranks[0].ops, *theirs = &t.program.ranks[1].ops;
    const Op sync = (*ops)[4], signal = (*ops)[5], wait = (*ops)[6];
    ops->insert(ops->end(), {sync, wait});
    if (met) ops->push_back(sync);
    ops->insert(ops->end(), {signal, signal, wait});
    theirs->insert(theirs->end(), {sync, (*theirs)[5], (*theirs)[6], (*theirs)[6], sync});
    theirs->push_back((*theirs)[5]);
    check(t.program, met ? Verdict::right : Verdict::deadlock);
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

TEST_CASE("too many states, and other chunks than the pipeline's, are no verdict") {
  check(one_shot(3, 1, PacketFormat::LL16).program, Verdict::too_large, {.most_states = 10});
  TestProgram t = exchange();
  t.program.loops = {{64, 2}};
  t.program.ranks[0].ops[3].loop = 0;
  check(t.program, Verdict::unsupported);
}

/// One block hands the input on to another through scratch of two units, as often as `credit`
/// allows.
TestProgram handed_on(uint32_t credit, uint32_t units = 2) {
  TestProgram t(1, 1);
  t.program.loops.push_back({64, 1});
  const uint32_t s = t.buffer(0, "s", 1);
  t.program.ranks[0].buffers[s].units = units;
  const uint32_t free = t.semaphore(0, "free", {}, credit), full = t.semaphore(0, "full", {});
  const auto hand = [&](uint32_t block, uint32_t from, uint32_t to, uint32_t dst, uint32_t src) {
    add_op(t, 0, block, OpKind::acquire, {id(from)});
    add_op(t, 0, block, OpKind::sync, {});
    add_op(t, 0, block, OpKind::copy, {local(dst, 0)}, {local(src, 0)});
    add_op(t, 0, block, OpKind::sync, {});
    add_op(t, 0, block, OpKind::release, {id(to)});
  };
  hand(0, free, full, s, kInput);
  hand(1, full, free, kOutput, s);
  for (Op& op : t.program.ranks[0].ops) op.loop = 0;
  return t;
}

TEST_CASE("a pipeline runs three rounds: scratch of two units is used again") {
  check(handed_on(2).program, Verdict::right, {.calls = 1});
  check(handed_on(3).program, Verdict::race, {.calls = 1});
  check(handed_on(2).program, Verdict::right, {.reduced = true});
  check(handed_on(3).program, Verdict::race, {.reduced = true});
}

TEST_CASE("a message has as many rounds as it has units, however many that are") {
  for (const uint32_t units : {2u, 5u, 9u}) {
    const Program right = handed_on(units, units).program;
    const Program wrong = handed_on(units + 1, units).program;
    for (const uint64_t rounds : {0u, 1u, 2u, units - 1, units, units + 1, units + 2}) {
      INFO(units << " units, " << rounds << " rounds");
      for (const int odd : {-1, 0, 1}) {
        const uint64_t bytes = rounds * 64 + (rounds == 0 ? 0 : odd);
        const ExploreOptions options{.calls = 1, .bytes = bytes, .reduced = true};
        check(right, Verdict::right, options);
        check(wrong, bytes > units * 64 ? Verdict::race : Verdict::right, options);
      }
    }
  }
}

TEST_CASE("a value of another round is not that of this one") {
  TestProgram t(1, 1);
  t.program.contract.in_place = InPlace::no;
  t.program.loops = {{16, 1}, {16, 1}};
  const uint32_t s = t.buffer(0, "s", 1);
  t.program.ranks[0].buffers[s].units = 2;
  const auto add = [&](OpKind kind, uint32_t loop, uint32_t to, uint32_t from) {
    Op& op = kind == OpKind::sync ? add_op(t, 0, 0, kind, {})
                                  : add_op(t, 0, 0, kind, {local(to, 0)}, {local(from, 0)});
    op.loop = loop;
  };
  add(OpKind::copy, 0, s, kInput);
  add(OpKind::sync, 0, 0, 0);
  add(OpKind::copy, 1, kOutput, s);  // what the pipeline before has left there
  add(OpKind::sync, 1, 0, 0);
  add(OpKind::copy, 1, s, kInput);
  add(OpKind::sync, 1, 0, 0);
  check(t.program, Verdict::right, {.bytes = 32});
  check(t.program, Verdict::wrong_data, {.bytes = 48});
}

/// Two ranks send each other the parts of a chunk from `first` on, of two.
TestProgram in_parts(uint16_t first) {
  TestProgram t(2, 1);
  connect_all(t, ChannelKind::memory);
  for (uint32_t r = 0; r < 2; ++r) {
    const uint32_t inbox = t.buffer(r, "inbox", 1, PacketFormat::LL16, 2);
    const uint32_t seen = t.buffer(r, "seen", 1);
    for (uint16_t part = first; part < 2; ++part) {
      for (const bool puts : {true, false}) {
        Op& op = puts
                     ? add_op(t, r, 0, OpKind::put_packets, {far(0, inbox, 0)}, {local(kInput, 0)})
                     : add_op(t, r, 0, OpKind::unpack_packets, {local(seen, 0)}, {local(inbox, 0)});
        op.part = part;
        op.parts = 2;
      }
    }
  }
  return t;
}

TEST_CASE("parts that a short message leaves empty say nothing") {
  for (const uint16_t first : {0, 1}) {
    TestProgram t = in_parts(first);
    for (uint32_t r = 0; r < 2; ++r) {
      add_op(t, r, 0, OpKind::sync, {});
      add_op(t, r, 0, OpKind::put, {far(0, kOutput, 0)}, {local(kInput, 0)});
      add_op(t, r, 0, OpKind::sync, {});
      add_op(t, r, 0, OpKind::signal, {end_of(0)});
      add_op(t, r, 0, OpKind::wait, {end_of(0)});
    }
    t.program.contract.kind = CollectiveKind::sendrecv;
    t.program.contract.shift = 1;
    for (const uint64_t bytes : {16, 32, 100}) {
      const bool empty = first == 1 && bytes == 16;
      const ExploreOptions options{.calls = 2, .bytes = bytes, .reduced = true};
      INFO(bytes << " bytes, parts from " << first << " on");
      CHECK((explore(t.program, options).verdict == Verdict::right) == !empty);
    }
  }
}

TEST_CASE("some ranks in place and some not") {
  const Program program = one_shot(2, 1, PacketFormat::LL16).program;
  check(program, Verdict::right, {.placed = {true, false}, .bytes = 20});
  // Rank 0 adds up once more what may be its own result.
  TestProgram t = one_shot(2, 1, PacketFormat::LL16);
  add_op(t, 0, 0, OpKind::sync, {});
  add_op(t, 0, 0, OpKind::copy, {local(kOutput, 0)}, {local(kInput, 0)});
  check(t.program, Verdict::wrong_data, {.placed = {false, true}});
}

TEST_CASE("copies are dealt to threads as an executor likes, packets are not") {
  TestProgram t(1, 1);
  t.program.contract.in_place = InPlace::no;
  const uint32_t s = t.buffer(0, "s", 1);
  add_op(t, 0, 0, OpKind::copy, {local(s, 0)}, {local(kInput, 0)});
  add_op(t, 0, 0, OpKind::copy, {local(kOutput, 0)}, {local(s, 0)});
  check(t.program, Verdict::right, {.bytes = 64});
  Verdict worst = Verdict::right;
  for (uint64_t dealing = 1; dealing < 9 && worst == Verdict::right; ++dealing) {
    worst = explore(t.program, {.bytes = 64, .dealing = dealing}).verdict;
  }
  CHECK(worst == Verdict::race);
}

/// A block copies the input; another does so too, and perhaps something else as well.
TestProgram copied_twice(bool same) {
  TestProgram t(1, 2);
  add_op(t, 0, 0, OpKind::copy, {local(kOutput, 0, 2)}, {local(kInput, 0, 2)});
  add_op(t, 0, 1, OpKind::copy, {local(kOutput, 1)}, {local(kInput, same ? 1 : 0)});
  return t;
}

TEST_CASE("stores of the same bits are a race, and known to be harmless") {
  check(copied_twice(true).program, Verdict::race);
  for (const bool reduced : {false, true}) {
    const ExploreOptions options{.same_bits = true, .reduced = reduced};
    check(copied_twice(true).program, Verdict::right, options);
    check(copied_twice(false).program, Verdict::race, options);
    CHECK(explore(copied_twice(true).program, options).same_bits);
    CHECK(!explore(handed_on(2).program, {.calls = 1, .same_bits = true, .reduced = reduced})
               .same_bits);
  }
}

/// A block hands the input on to another, and stores it once more while that one reads.
TEST_CASE("a store of the same bits that comes before one that does not know of it") {
  TestProgram t(1, 1);
  const uint32_t s = t.buffer(0, "s", 1), full = t.semaphore(0, "full", {});
  add_op(t, 0, 0, OpKind::copy, {local(s, 0)}, {local(kInput, 0)});
  add_op(t, 0, 0, OpKind::sync, {});
  add_op(t, 0, 0, OpKind::release, {id(full)});
  add_op(t, 0, 0, OpKind::copy, {local(s, 0)}, {local(kInput, 0)});
  add_op(t, 0, 1, OpKind::acquire, {id(full)});
  add_op(t, 0, 1, OpKind::sync, {});
  add_op(t, 0, 1, OpKind::copy, {local(kOutput, 0)}, {local(s, 0)});
  for (const bool reduced : {false, true}) {
    const ExploreOptions options{.calls = 1, .same_bits = true, .reduced = reduced};
    check(t.program, Verdict::right, options);
    CHECK(explore(t.program, options).same_bits);
  }
}

/// A chunk is copied where its bits are already, then sent in packets to a block that adds to it
/// where it came from: the packets show that the copy is over.
TEST_CASE("what is made of bits that were stored once more depends on the later store") {
  TestProgram t(1, 1);
  const uint32_t s = t.buffer(0, "s", 1), u = t.buffer(0, "u", 1);
  const uint32_t p = t.buffer(0, "p", 1, PacketFormat::LL16), full = t.semaphore(0, "full", {});
  add_op(t, 0, 0, OpKind::copy, {local(s, 0)}, {local(kInput, 0)});
  add_op(t, 0, 0, OpKind::sync, {});
  add_op(t, 0, 0, OpKind::release, {id(full)});
  for (const uint32_t from : {kInput, s}) {
    add_op(t, 0, 0, OpKind::copy, {local(u, 0)}, {local(from, 0)});
    add_op(t, 0, 0, OpKind::sync, {});
  }
  add_op(t, 0, 0, OpKind::copy_packets, {local(p, 0)}, {local(u, 0)});
  add_op(t, 0, 0, OpKind::copy, {local(kOutput, 0)}, {local(kInput, 0)});
  add_op(t, 0, 1, OpKind::acquire, {id(full)});
  add_op(t, 0, 1, OpKind::sync, {});
  add_op(t, 0, 1, OpKind::reduce_packets, {local(s, 0)}, {local(kInput, 0), local(p, 0)});
  for (const bool same_bits : {false, true}) {
    check(t.program, Verdict::right, {.calls = 1, .same_bits = same_bits});
  }
}

}  // namespace
}  // namespace mscclc
