#include "executor/early_launch.h"

#include <catch2/catch.hpp>

#include "executor/block_programs.h"
#include "executor/testing/test_plans.h"

namespace mscclc {
namespace {

using namespace testing;

RankProgram marked(const Program& program, uint32_t rank) {
  RankProgram lowered;
  Diagnostics diagnostics;
  REQUIRE(lower_rank(program, rank, lowered, diagnostics));
  mark_early_launch(program, rank, lowered);
  return lowered;
}

/// Which ops of a rank let the next launch begin, of all its blocks.
std::vector<uint32_t> free_next(const Program& program, uint32_t rank) {
  const RankProgram lowered = marked(program, rank);
  std::vector<uint32_t> ops;
  for (uint32_t i = 0; i < lowered.ops.size(); ++i) {
    if ((lowered.ops[i].flags & device::kFreesNext) != 0) ops.push_back(i);
  }
  return ops;
}

using Ops = std::vector<uint32_t>;

TEST_CASE("packets of all peers let the next launch begin") {
  CHECK(free_next(one_shot(2, 1, PacketFormat::LL16).program, 0) == Ops{1});
  CHECK(free_next(one_shot(4, 1, PacketFormat::sentinel).program, 3) == Ops{1});
  CHECK(free_next(one_shot(4, 2, PacketFormat::LL128).program, 1) == Ops{1, 3});
}

TEST_CASE("waits let the next launch begin where the block meets after them") {
  CHECK(free_next(exchange().program, 0) == Ops{2});
  TestProgram t = exchange();
  for (uint32_t r = 0; r < 2; ++r) erase(t.program, r, 2);  // the first meeting
  CHECK(free_next(t.program, 0) == Ops{3});
}

TEST_CASE("a block that waits for no other lets the next launch begin at once") {
  TestProgram t(2, 1);
  connect_all(t, ChannelKind::memory);
  add_op(t, 0, 0, OpKind::put, {far(0, kOutput, 0)}, {local(kInput, 0)});
  add_op(t, 0, 0, OpKind::signal, {end_of(0)});
  add_op(t, 1, 0, OpKind::wait, {end_of(0)});
  add_op(t, 1, 0, OpKind::sync, {});
  CHECK(free_next(t.program, 0) == Ops{0});
  CHECK(free_next(t.program, 1) == Ops{1});
}

TEST_CASE("a rank that depends on ranks it does not hear from keeps the next launch back") {
  // 0 -> 1 -> 2: rank 2 hears from 1, which waits for 0.
  TestProgram t(3, 1);
  connect_all(t, ChannelKind::memory);
  add_op(t, 0, 0, OpKind::signal, {end_of(mesh(0, 1))});
  add_op(t, 1, 0, OpKind::wait, {end_of(mesh(1, 0))});
  add_op(t, 1, 0, OpKind::sync, {});
  add_op(t, 1, 0, OpKind::signal, {end_of(mesh(1, 2))});
  add_op(t, 2, 0, OpKind::wait, {end_of(mesh(2, 1))});
  add_op(t, 2, 0, OpKind::sync, {});
  CHECK(free_next(t.program, 1) == Ops{1});
  CHECK(free_next(t.program, 2).empty());
}

TEST_CASE("a signal that several blocks send says nothing of each") {
  TestProgram t(2, 1);
  connect_all(t, ChannelKind::memory);
  add_op(t, 0, 0, OpKind::signal, {end_of(0)});
  add_op(t, 0, 1, OpKind::signal, {end_of(0)});
  add_op(t, 1, 0, OpKind::wait, {end_of(0)});
  add_op(t, 1, 0, OpKind::wait, {end_of(0)});
  add_op(t, 1, 0, OpKind::sync, {});
  CHECK(free_next(t.program, 1).empty());
}

TEST_CASE("blocks that wait for blocks of their rank hear from others through them") {
  // Block 1 of rank 1 waits for block 0, which waits for rank 0.
  TestProgram t(2, 1);
  connect_all(t, ChannelKind::memory);
  t.semaphore(1, "s", {}, 0);
  add_op(t, 0, 0, OpKind::signal, {end_of(0)});
  add_op(t, 1, 0, OpKind::wait, {end_of(0)});
  add_op(t, 1, 0, OpKind::sync, {});
  add_op(t, 1, 0, OpKind::release, {id(0)});
  add_op(t, 1, 1, OpKind::acquire, {id(0)});
  CHECK(free_next(t.program, 1) == Ops{1, 3});
}

/// Rank 0 unpacks chunks [0, n) of packets that rank 1 sends, `sent` of them in each op and block.
TestProgram in_parts(uint32_t n, const std::vector<std::pair<uint32_t, uint32_t>>& sent) {
  TestProgram t(2, n);
  connect_all(t, ChannelKind::memory);
  uint32_t inbox = 0;
  for (uint32_t r = 0; r < 2; ++r) inbox = t.buffer(r, "inbox", n, PacketFormat::LL16, 2);
  uint32_t block = 0;
  for (const auto& [first, count] : sent) {
    add_op(t, 1, block++, OpKind::put_packets, {far(0, inbox, first, count)},
           {local(kInput, first, count)});
  }
  add_op(t, 0, 0, OpKind::unpack_packets, {local(kOutput, 0, n)}, {local(inbox, 0, n)});
  return t;
}

TEST_CASE("chunks that are sent in parts have a sender each, or several, or none") {
  CHECK(free_next(in_parts(8, {{0, 8}}).program, 0) == Ops{0});
  // The first thread may poll nothing but what the first of them has sent; all know what some do
  // after a meeting.
  TestProgram two = in_parts(8, {{0, 4}, {4, 4}});
  CHECK(free_next(two.program, 0).empty());
  add_op(two, 0, 0, OpKind::sync, {});
  CHECK(free_next(two.program, 0) == Ops{1});
  CHECK(free_next(in_parts(8, {{0, 5}, {4, 4}}).program, 0).empty());
  CHECK(free_next(in_parts(8, {{0, 8}, {3, 1}}).program, 0).empty());
  CHECK(free_next(in_parts(8, {{0, 4}, {5, 3}}).program, 0).empty());
  CHECK(free_next(in_parts(8, {{0, 4}}).program, 0).empty());
  CHECK(free_next(in_parts(8, {{1, 7}}).program, 0).empty());
}

TEST_CASE("a part of an op has heard from the senders of its own chunks") {
  const auto parts = [](uint32_t chunks, const std::vector<std::pair<uint32_t, uint32_t>>& sent) {
    TestProgram t = in_parts(chunks, sent);
    std::vector<Op>& ops = t.program.ranks[0].ops;
    ops.push_back(ops[0]);
    for (uint32_t i = 0; i < 2; ++i) ops[i].part = i, ops[i].parts = 2;
    return free_next(t.program, 0);
  };
  CHECK(parts(2, {{0, 1}, {1, 1}}) == Ops{1});
  CHECK(parts(2, {{0, 2}}) == Ops{0});
  CHECK(parts(3, {{0, 3}}) == Ops{0});
  CHECK(parts(3, {{0, 1}, {1, 2}}).empty());  // which part has what of the middle one?
}

TEST_CASE("where there are credits a signal may be of an earlier call") {
  TestProgram t = exchange();
  CHECK_FALSE(free_next(t.program, 0).empty());
  t.program.ranks[0].channels[0].credits = 1;
  CHECK(free_next(t.program, 0).empty());
}

TEST_CASE("billions of chunks take no longer than one") {
  constexpr uint32_t kMany = 0xfffffff0;
  CHECK(free_next(in_parts(kMany, {{0, kMany}}).program, 0) == Ops{0});
}

TEST_CASE("packets through a switch do not say which rank sent them") {
  TestProgram t(2, 1);
  connect_all(t, ChannelKind::memory);
  uint32_t inbox = 0, own = 0, all = 0;
  for (uint32_t r = 0; r < 2; ++r) {
    inbox = t.buffer(r, "inbox", 1, PacketFormat::LL16, 2);
    own = t.buffer(r, "own", 1, PacketFormat::LL16, 2);
    all = t.switch_channel(r, "all", {0, 1});
  }
  add_op(t, 0, 0, OpKind::put_packets, {far(0, inbox, 0)}, {local(kInput, 0)});
  add_op(t, 1, 0, OpKind::unpack_packets, {local(kOutput, 0)}, {local(inbox, 0)});
  CHECK(free_next(t.program, 1) == Ops{0});
  add_op(t, 0, 1, OpKind::switch_broadcast_packets, {far(all, inbox, 0)}, {local(own, 0)});
  CHECK(free_next(t.program, 1).empty());
}

/// Flags of the steps of a rank's block 0.
std::vector<uint8_t> step_flags(TestProgram& t, uint64_t bytes) {
  DeviceProgram device;
  Diagnostics diagnostics;
  REQUIRE(lower(t.program, device, diagnostics));
  mark_early_launch(t.program, 0, device.ranks[0]);
  REQUIRE(fit_to_size(device, t.program, {.part_bytes = bytes}, diagnostics));
  const RankProgram& rank = device.ranks[0];
  std::vector<device::BaseAddress> bases;
  for (const device::Base& b : rank.bases) bases.push_back({nullptr, b.copy_stride, b.copies});
  const std::vector<device::ChannelEnd> ends(t.program.ranks[0].channels.size());
  BlockPrograms programs;
  REQUIRE(programs.pack(rank, {bases, ends}, WaitSlots(rank)));
  const device::Steps steps(reinterpret_cast<const device::StepHeader*>(programs.data()));
  const uint32_t count = reinterpret_cast<const device::StepHeader*>(programs.data())->steps;
  std::vector<uint8_t> flags;
  for (uint32_t i = 0; i < count; ++i) {
    flags.push_back(steps.steps[i].flags & (device::kFreesNext | device::kShowsPeers));
  }
  return flags;
}

/// Ranks 1 and 2 send rank 0 a packet each, which it unpacks in one op or in two.
TestProgram two_senders(bool one_op) {
  TestProgram t(3, 2);
  t.program.contract.kind = CollectiveKind::allreduce;
  connect_all(t, ChannelKind::memory);
  uint32_t inbox = 0;
  for (uint32_t r = 0; r < 3; ++r) inbox = t.buffer(r, "inbox", 2, PacketFormat::LL16, 2);
  for (uint32_t p = 1; p < 3; ++p) {
    add_op(t, p, 0, OpKind::put_packets, {far(mesh(p, 0), inbox, p - 1)}, {local(kInput, p - 1)});
  }
  if (one_op) {
    add_op(t, 0, 0, OpKind::unpack_packets, {local(kOutput, 0), local(kOutput, 1)},
           {local(inbox, 0), local(inbox, 1)});
    return t;
  }
  for (uint32_t c = 0; c < 2; ++c) {
    add_op(t, 0, 0, OpKind::unpack_packets, {local(kOutput, c)}, {local(inbox, c)});
  }
  return t;
}

constexpr uint8_t kShows = device::kShowsPeers, kBoth = device::kFreesNext | kShows;
using Flags = std::vector<uint8_t>;

TEST_CASE("of an op's steps the last one lets the next launch begin") {
  TestProgram t = two_senders(true);
  CHECK(step_flags(t, 64) == Flags{kBoth});
  CHECK(step_flags(t, 48) == Flags{kShows, kBoth});  // moves that differ in length are two steps
}

TEST_CASE("a block without a part in an op has not heard from its peer") {
  TestProgram t = two_senders(false);
  Op& first = t.program.ranks[0].ops[0];
  first.part = 1;  // the second of two blocks that unpack it
  first.parts = 2;
  CHECK(step_flags(t, 64) == Flags{kShows, kBoth});
  CHECK(step_flags(t, 32) == Flags{kShows});  // a unit, for the first of the two
}

}  // namespace
}  // namespace mscclc
