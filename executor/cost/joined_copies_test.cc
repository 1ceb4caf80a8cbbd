// Copies beside packets: a step less where devices do them as moves of that step
// (executor/block_programs_test.cc has the same plans as programs of blocks).
#include "executor/cost/joined_copies.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "executor/cost/model.h"
#include "executor/testing/test_plans.h"

namespace mscclc::cost {
namespace {

using namespace mscclc::testing;

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
    CHECK(steps_of_root(copy_and_unpack(row.format, false)) == (is_sentinel(row.format) ? 3 : 2));
    CHECK(steps_of_root(copy_and_unpack(row.format, true)) == 4);
  }
}

TEST_CASE("nor does one at a block's end, after what sends the same") {
  for (const PacketFormatInfo& row : packet_formats()) {
    INFO(static_cast<int>(row.format));
    CHECK(steps_of_root(from_root(row.format)) == (is_sentinel(row.format) ? 2 : 1));
  }
}

TEST_CASE("what has several destinations takes a copy of the same chunk only") {
  struct Case {
    uint32_t ranks;
    PacketFormat format;
    bool same, more;
    size_t steps;  ///< as many as the programs of blocks have
  };
  for (const Case& c :
       {Case{2, PacketFormat::LL16, true, false, 1}, Case{2, PacketFormat::LL128, false, false, 1},
        Case{4, PacketFormat::LL16, true, false, 1}, Case{4, PacketFormat::LL16, false, false, 2},
        Case{2, PacketFormat::LL16, true, true, 3},
        Case{2, PacketFormat::sentinel, true, false, 2}}) {
    INFO(c.ranks << " ranks, " << static_cast<int>(c.format) << ", " << c.same << c.more);
    CHECK(steps_of_root(put_and_copy(c.ranks, c.format, c.same, c.more)) == c.steps);
  }
}

}  // namespace mscclc::cost
