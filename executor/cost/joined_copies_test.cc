// Copies beside packets: a step less where devices do them as moves of that step
// (executor/block_programs_test.cc has the same cases as programs of blocks).
#include "executor/cost/joined_copies.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "executor/cost/model.h"
#include "executor/testing/test_plans.h"

namespace mscclc::cost {
namespace {

using namespace mscclc::testing;

/// An exchange of two ranks by packets; the own chunk is copied before the unpacking.
TestProgram exchange(PacketFormat format, bool sync) {
  TestProgram t(2, 2);
  connect_all(t, ChannelKind::memory);
  for (uint32_t r = 0; r < 2; ++r) {
    const uint32_t inbox = t.buffer(r, "inbox", 1, format, 2);
    add_op(t, r, 0, OpKind::put_packets, {far(0, inbox, 0)}, {local(kInput, r)});
    add_op(t, r, 0, OpKind::copy, {local(kOutput, r)}, {local(kInput, r)});
    if (sync) add_op(t, r, 0, OpKind::sync, {});
    add_op(t, r, 0, OpKind::unpack_packets, {local(kOutput, 1 - r)}, {local(inbox, 0)});
  }
  return t;
}

/// A root sends its chunk, and copies it at the end.
TestProgram from_root(PacketFormat format) {
  TestProgram t(2, 1);
  connect_all(t, ChannelKind::memory);
  const uint32_t inbox = t.buffer(1, "inbox", 1, format, 2);
  add_op(t, 0, 0, OpKind::put_packets, {far(0, inbox, 0)}, {local(kInput, 0)});
  add_op(t, 0, 0, OpKind::copy, {local(kOutput, 0)}, {local(kInput, 0)});
  add_op(t, 1, 0, OpKind::unpack_packets, {local(kOutput, 0)}, {local(inbox, 0)});
  return t;
}

/// Steps that rank 0 does in a call.
size_t steps_of_root(const TestProgram& t) {
  Diagnostics diagnostics;
  Machine machine = find_machine("4xH200", diagnostics).value();
  Model model(t.program);
  const auto timeline = model.predict(call_of(t.program, 4096, Dtype::f32), machine, diagnostics);
  INFO(render_text(diagnostics, Sources()));
  REQUIRE(timeline);
  return static_cast<size_t>(std::ranges::count(timeline->records, 0u, &StepRecord::rank));
}

}  // namespace

TEST_CASE("a copy before an op that unpacks takes no step of its own") {
  for (const PacketFormatInfo& row : packet_formats()) {
    INFO(static_cast<int>(row.format));
    CHECK(steps_of_root(exchange(row.format, false)) == (is_sentinel(row.format) ? 3 : 2));
    CHECK(steps_of_root(exchange(row.format, true)) == 4);
  }
}

TEST_CASE("nor does one at a block's end, after what sends the same") {
  for (const PacketFormatInfo& row : packet_formats()) {
    INFO(static_cast<int>(row.format));
    CHECK(steps_of_root(from_root(row.format)) == (is_sentinel(row.format) ? 2 : 1));
  }
}

}  // namespace mscclc::cost
