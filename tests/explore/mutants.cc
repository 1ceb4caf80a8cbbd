#include "tests/explore/mutants.h"

#include "executor/testing/test_plans.h"
#include "ir/verify/verify.h"

namespace mscclc {
namespace {

using namespace testing;

/// Block `b` of rank r signals all its peers, and waits for signals from all.
void meet_peers(TestProgram& t, uint32_t r, uint32_t b, bool relaxed) {
  std::vector<Operand> ends;
  for (uint32_t c = 0; c + 1 < t.program.ranks.size(); ++c) ends.push_back(end_of(c));
  if (!relaxed) add_op(t, r, b, OpKind::sync, {});
  add_op(t, r, b, OpKind::signal, ends).relaxed = relaxed;
  add_op(t, r, b, OpKind::wait, ends).relaxed = relaxed;
  if (relaxed) add_op(t, r, b, OpKind::sync, {});
}

/// Two ranks swap their input, by put or by get.
TestProgram exchange(ChannelKind kind, bool get) {
  TestProgram t(2, 1);
  t.program.contract.kind = CollectiveKind::sendrecv;
  t.program.contract.shift = 1;
  connect_all(t, kind);
  for (uint32_t r = 0; r < 2; ++r) {
    meet_peers(t, r, 0, true);
    if (get) {
      add_op(t, r, 0, OpKind::get, {local(kOutput, 0)}, {far(0, kInput, 0)});
    } else {
      add_op(t, r, 0, OpKind::put, {far(0, kOutput, 0)}, {local(kInput, 0)});
    }
    meet_peers(t, r, 0, false);
    if (kind == ChannelKind::port) add_op(t, r, 0, OpKind::flush, {end_of(0)});
  }
  return t;
}

/// Allreduce of two ranks in two blocks: one receives, the other adds up; between them a semaphore
/// or a barrier.
TestProgram two_blocks(bool barrier) {
  TestProgram t(2, 1);
  connect_all(t, ChannelKind::memory);
  for (uint32_t r = 0; r < 2; ++r) {
    const uint32_t inbox = t.buffer(r, "inbox", 1);
    const uint32_t here = t.semaphore(r, "here", {});
    meet_peers(t, r, 0, true);
    add_op(t, r, 0, OpKind::put, {far(0, inbox, 0)}, {local(kInput, 0)});
    meet_peers(t, r, 0, false);
    if (barrier) {
      add_op(t, r, 0, OpKind::barrier, {id(0), id(1)});
      add_op(t, r, 1, OpKind::barrier, {id(0), id(1)});
    } else {
      add_op(t, r, 0, OpKind::sync, {});
      add_op(t, r, 0, OpKind::release, {id(here)});
      add_op(t, r, 1, OpKind::acquire, {id(here)});
      add_op(t, r, 1, OpKind::sync, {});
    }
    add_op(t, r, 1, OpKind::reduce, {local(kOutput, 0)}, {local(kInput, 0), local(inbox, 0)})
        .complete = true;
  }
  return t;
}

/// Allgather of three ranks: all put to all.
TestProgram all_to_all() {
  TestProgram t(3, 1);
  t.program.contract.kind = CollectiveKind::allgather;
  t.program.contract.in_place = InPlace::no;
  connect_all(t, ChannelKind::memory);
  for (uint32_t r = 0; r < 3; ++r) {
    t.program.ranks[r].buffers[kOutput].chunks = 3;
    meet_peers(t, r, 0, true);
    add_op(t, r, 0, OpKind::put, {far(0, kOutput, r), far(1, kOutput, r)},
           {local(kInput, 0), local(kInput, 0)});
    add_op(t, r, 0, OpKind::copy, {local(kOutput, r)}, {local(kInput, 0)});
    meet_peers(t, r, 0, false);
  }
  return t;
}

/// Packets that are made here and sent by a port.
TestProgram port_packets() {
  TestProgram t(2, 1);
  t.program.contract.in_place = InPlace::no;
  connect_all(t, ChannelKind::port);
  for (uint32_t r = 0; r < 2; ++r) {
    const uint32_t inbox = t.buffer(r, "inbox", 1, PacketFormat::LL16, 2);
    const uint32_t outbox = t.buffer(r, "outbox", 1, PacketFormat::LL16, 2);
    add_op(t, r, 0, OpKind::copy_packets, {local(outbox, 0)}, {local(kInput, 0)});
    add_op(t, r, 0, OpKind::sync, {});
    add_op(t, r, 0, OpKind::put_packets, {far(0, inbox, 0)}, {local(outbox, 0)});
    add_op(t, r, 0, OpKind::reduce_packets, {local(kOutput, 0)},
           {local(kInput, 0), local(inbox, 0)})
        .complete = true;
  }
  return t;
}

TestProgram original(Dice& dice) {
  switch (dice.below(9)) {
    case 0:
      return exchange(ChannelKind::memory, false);
    case 1:
      return exchange(ChannelKind::memory, true);
    case 2:
      return exchange(ChannelKind::port, false);
    case 3:
      return two_blocks(false);
    case 4:
      return two_blocks(true);
    case 5:
      return one_shot(2, 1, PacketFormat::LL16, 1 + dice.below(2));
    case 6:
      return one_shot(2 + dice.below(2), 1, PacketFormat::sentinel, 1 + dice.below(2));
    case 7:
      return all_to_all();
    default:
      return port_packets();
  }
}

void mutate(Program& program, Dice& dice) {
  const auto below = [&](size_t n) { return dice.below(static_cast<uint32_t>(n)); };
  std::vector<Op>& ops = program.ranks[below(program.ranks.size())].ops;
  if (ops.empty()) return;  // a mutation before this one took the last
  const size_t i = below(ops.size());
  const bool by_port = program.ranks[0].channels[0].kind == ChannelKind::port;
  switch (dice.below(4)) {
    case 0:
      ops.erase(ops.begin() + static_cast<ptrdiff_t>(i));
      break;
    case 1:
      // The same packets twice over a port: of a slot that is being made again it sends what is
      // going to be sent. A race that changes nothing.
      if (ops[i].kind == OpKind::put_packets && by_port) break;
      ops.insert(ops.begin() + static_cast<ptrdiff_t>(i), Op(ops[i]));
      break;
    case 2:
      if (i + 1 < ops.size() && ops[i].block == ops[i + 1].block) std::swap(ops[i], ops[i + 1]);
      break;
    default:
      if (ops[i].kind == OpKind::signal || ops[i].kind == OpKind::wait) {
        ops[i].relaxed = !ops[i].relaxed;
      }
      break;
  }
}

}  // namespace

TestProgram mutant(Dice& dice) {
  for (;;) {
    TestProgram t = original(dice);
    for (uint32_t k = dice.below(4); k > 0; --k) mutate(t.program, dice);
    Diagnostics diagnostics;
    if (verify_structure(t.program, diagnostics)) return t;
  }
}

}  // namespace mscclc
