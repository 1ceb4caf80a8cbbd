#include "executor/cost/packet_arrows.h"

#include <catch2/catch.hpp>

#include "executor/cost/model.h"
#include "executor/testing/test_plans.h"

namespace mscclc::cost {
namespace {

using mscclc::testing::TestProgram;

Timeline with_arrows(const Program& program) {
  Diagnostics diagnostics;
  Model model(program);
  Machine machine = *find_machine("4xH200", diagnostics);
  const auto timeline =
      model.predict(call_of(program, 4096, Dtype::f32), machine, diagnostics, Detail::arrows);
  REQUIRE(timeline);
  return *timeline;
}

}  // namespace

TEST_CASE("a step that reads packets has an arrow from each step that wrote them") {
  const TestProgram t = testing::one_shot(4, 1, PacketFormat::LL16);
  const Timeline timeline = with_arrows(t.program);
  std::vector<std::pair<uint32_t, uint32_t>> ranks;
  for (const Arrow& arrow : timeline.arrows) {
    const StepRecord& from = timeline.records[arrow.from];
    const StepRecord& to = timeline.records[arrow.to];
    CHECK(arrow.packets);
    CHECK(arrow.sent < arrow.came);
    CHECK(arrow.came <= to.end);
    CHECK(from.rank != to.rank);
    ranks.emplace_back(from.rank, to.rank);
  }
  std::ranges::sort(ranks);
  CHECK(std::ranges::adjacent_find(ranks) == ranks.end());
  CHECK(ranks.size() == 4 * 3);
}

TEST_CASE("a signal is an arrow, whether its wait had to wait or not") {
  const TestProgram t = testing::exchange();
  const Timeline timeline = with_arrows(t.program);
  REQUIRE(timeline.arrows.size() == 4);
  for (const Arrow& arrow : timeline.arrows) {
    CHECK_FALSE(arrow.packets);
    CHECK(timeline.records[arrow.from].kind == device::StepKind::signal);
    CHECK(timeline.records[arrow.to].kind == device::StepKind::wait);
    CHECK(timeline.records[arrow.from].rank != timeline.records[arrow.to].rank);
  }
}

TEST_CASE("of a place that is written again, the reader has the last before its end") {
  std::vector<StepRecord> records(4);
  records[2].end = 50;
  records[3].end = 150;
  PacketArrows packets;
  packets.came(0, {1, 3, {0, 64}}, 10, 20);
  packets.came(1, {1, 3, {0, 64}}, 90, 100);
  packets.read(2, {1, 3, {0, 64}});
  packets.read(3, {1, 3, {0, 64}});
  packets.read(3, {1, 3, {64, 128}});  // nothing was written there
  packets.read(3, {0, 3, {0, 64}});    // nor there
  std::vector<Arrow> arrows;
  packets.add_arrows(records, arrows);
  REQUIRE(arrows.size() == 2);
  CHECK(arrows[0].from == 0);
  CHECK(arrows[0].to == 2);
  CHECK(arrows[1].from == 1);
  CHECK(arrows[1].to == 3);
}

TEST_CASE("without being asked for, there are no arrows") {
  const TestProgram t = testing::exchange();
  Diagnostics diagnostics;
  Model model(t.program);
  const Machine machine = *find_machine("4xH200", diagnostics);
  const auto timeline = model.predict(call_of(t.program, 4096, Dtype::f32), machine, diagnostics);
  REQUIRE(timeline);
  CHECK(timeline->arrows.empty());
}

TEST_CASE("the steps that meet at a barrier are known, and what a step stores") {
  TestProgram t(1, 1);
  testing::add_op(t, 0, 0, OpKind::barrier, {testing::id(0), testing::id(1)});
  testing::add_op(t, 0, 1, OpKind::barrier, {testing::id(0), testing::id(1)});
  const Timeline timeline = with_arrows(t.program);
  REQUIRE(timeline.meetings.size() == 1);
  CHECK(timeline.meetings[0].size() == 2);
}

}  // namespace mscclc::cost
