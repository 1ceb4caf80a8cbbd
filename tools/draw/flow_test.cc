// What meets what, with pipelines and credits.
#include "tools/draw/flow.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/helpers/programs/test_programs.h"

using namespace mscclc;
using namespace mscclc::draw;
using namespace mscclc::testing;

namespace {

/// Two ranks with a channel between them: end 0 at both.
TestProgram connected() {
  TestProgram t(2, 2);
  for (const uint32_t r : {0u, 1u}) t.channel(r, ChannelKind::memory, "ch", {}, 1 - r, 0);
  return t;
}

const Flow* find_flow(const std::vector<Flow>& flows, OpRef from, OpRef to) {
  const auto at = std::ranges::find_if(
      flows, [&](const Flow& flow) { return flow.from == from && flow.to == to; });
  return at == flows.end() ? nullptr : &*at;
}

}  // namespace

TEST_CASE("draw flow: the k-th signal meets the k-th wait") {
  TestProgram t = connected();
  t.op_in(0, 0, OpKind::signal, {end_of(0)});
  t.op_in(0, 0, OpKind::signal, {end_of(0)});
  t.op_in(1, 0, OpKind::wait, {end_of(0)});
  const auto flows = flows_of(t.program);
  REQUIRE(flows.size() == 1);
  CHECK(flows[0].from == OpRef{0, 0});
  CHECK(flows[0].to == OpRef{1, 0});
  CHECK(flows[0].rounds == 0);
}

TEST_CASE("draw flow: credits make a round wait for an earlier one") {
  TestProgram t = connected();
  t.program.loops.push_back({1024, 1});
  t.op_in(0, 0, OpKind::signal, {end_of(0)});
  t.op_in(0, 0, OpKind::signal, {end_of(0)});
  t.op_in(0, 0, OpKind::signal, {end_of(0)}).loop = 0;
  t.op_in(1, 0, OpKind::wait, {end_of(0)}).loop = 0;
  t.op_in(1, 0, OpKind::wait, {end_of(0)});
  const auto flows = flows_of(t.program);
  const Flow* round = find_flow(flows, {0, 2}, {1, 0});
  REQUIRE(round != nullptr);
  CHECK(round->rounds == 2);
  CHECK(round->credits == 2);
  CHECK(find_flow(flows, {0, 0}, {1, 0}) != nullptr);  // the first round takes the first credit
  CHECK(find_flow(flows, {0, 2}, {1, 1}) != nullptr);  // and the last wait what a round left
}

TEST_CASE("draw flow: a pipeline without credits meets in the same round") {
  TestProgram t = connected();
  t.program.loops.push_back({1024, 1});
  t.op_in(0, 0, OpKind::signal, {end_of(0)}).loop = 0;
  t.op_in(1, 0, OpKind::wait, {end_of(0)}).loop = 0;
  const auto flows = flows_of(t.program);
  REQUIRE(flows.size() == 1);
  CHECK(flows[0].rounds == 0);
}

TEST_CASE("draw flow: semaphores begin with what they hold, and blocks meet at barriers") {
  TestProgram t(1, 1);
  t.semaphore(0, "done", {}, 1);
  t.op_in(0, 0, OpKind::release, {id(0)});
  t.op_in(0, 0, OpKind::barrier, {id(0), id(1)});
  t.op_in(0, 1, OpKind::acquire, {id(0)});
  t.op_in(0, 1, OpKind::acquire, {id(0)});
  t.op_in(0, 1, OpKind::barrier, {id(0), id(1)});
  const auto flows = flows_of(t.program);
  CHECK(find_flow(flows, {0, 0}, {0, 2}) == nullptr);
  CHECK(find_flow(flows, {0, 0}, {0, 3}) != nullptr);
  const Flow* meeting = find_flow(flows, {0, 1}, {0, 4});
  REQUIRE(meeting != nullptr);
  CHECK(meeting->kind == FlowKind::barrier);
}

TEST_CASE("draw flow: packets go from their writer to their reader, part by part") {
  TestProgram t = connected();
  for (const uint32_t r : {0u, 1u}) t.buffer(r, "inbox", 1, PacketFormat::LL16);
  for (const uint16_t part : {uint16_t{0}, uint16_t{1}}) {
    Op& put = t.op_in(0, part, OpKind::put_packets, {far(0, 2, 0)}, {local(kInput, 0)});
    put.part = part;
    put.parts = 2;
    Op& unpack = t.op_in(1, part, OpKind::unpack_packets, {local(kOutput, 0)}, {local(2, 0)});
    unpack.part = part;
    unpack.parts = 2;
  }
  const auto flows = flows_of(t.program);
  CHECK(flows.size() == 2);
  CHECK(find_flow(flows, {0, 0}, {1, 0}) != nullptr);
  CHECK(find_flow(flows, {0, 1}, {1, 1}) != nullptr);
}
