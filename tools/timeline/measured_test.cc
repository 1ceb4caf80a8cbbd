#include "tools/timeline/measured.h"

#include <catch2/catch.hpp>

#include "executor/cost/model.h"
#include "executor/stamps.h"
#include "executor/testing/test_plans.h"
#include "tools/timeline/predicted.h"

namespace mscclc::timeline {
namespace {

using device::StepKind;
using mscclc::testing::TestProgram;

cost::Timeline plan_of(const Program& program) {
  Diagnostics diagnostics;
  const auto plan = predict(program, cost::call_of(program, 4096, Dtype::f32),
                            *find_machine("4xH200", diagnostics), diagnostics);
  REQUIRE(plan);
  return *plan;
}

/// A row of a block whose clock ticks twice a nanosecond.
RankStamps stamps_of(uint64_t began,
                     const std::vector<std::pair<device::BlockStamp, uint64_t>>& steps,
                     uint64_t takes, uint32_t words = 32) {
  RankStamps stamps;
  stamps.words = words;
  stamps.rows.resize(words);
  stamps.rows[device::kStampsDue] = steps.size();
  stamps.rows[device::kStampsBegan] = began;
  stamps.rows[device::kStampsEnded] = began + takes;
  stamps.rows[device::kStampsTicks] = 2 * takes;
  for (size_t i = 0; i < steps.size() && device::kStampHead + i < words; ++i) {
    stamps.rows[device::kStampHead + i] =
        device::stamp_word(steps[i].first.what, steps[i].first.source, 2 * steps[i].second);
  }
  return stamps;
}

device::BlockStamp step(StepKind kind, uint32_t source) {
  return {static_cast<uint32_t>(kind), source, 0};
}

/// The steps of exchange(), at these times; its data moves in two steps.
RankStamps exchange_stamps(uint64_t began, std::vector<uint64_t> at, uint64_t takes) {
  return stamps_of(began,
                   {{step(StepKind::signal, 0), at[0]},
                    {step(StepKind::wait, 1), at[1]},
                    {step(StepKind::sync, 2), at[2]},
                    {step(StepKind::copy, 3), at[3]},
                    {step(StepKind::copy, 3), at[3] + 1},
                    {step(StepKind::sync, 4), at[4]},
                    {step(StepKind::signal, 5), at[5]},
                    {step(StepKind::wait, 6), at[6]}},
                   takes);
}

}  // namespace

TEST_CASE("a word of a row gives back what was stamped, up to its bits") {
  const device::BlockStamp stamp = device::stamp_of_word(device::stamp_word(0xf2, 77, 123456));
  CHECK(stamp.what == 0xf2);
  CHECK(stamp.source == 77);
  CHECK(stamp.ticks == 123456);
  const device::BlockStamp most = device::stamp_of_word(device::stamp_word(3, ~0u, ~0ull));
  CHECK(most.what == 3);
  CHECK(most.source == (1u << device::kStampSource) - 1);
  CHECK(most.ticks == (uint64_t{1} << device::kStampTicks) - 1);
}

TEST_CASE("stamps become slices, and who waited for whom follows from the plan") {
  const TestProgram t = testing::exchange();
  const cost::Timeline plan = plan_of(t.program);
  // Rank 1 comes 500 ns late.
  const std::vector<RankStamps> ranks = {
      exchange_stamps(1000, {0, 100, 620, 630, 900, 910, 1000}, 1500),
      exchange_stamps(1500, {0, 100, 110, 120, 400, 410, 900}, 1000)};
  const auto trace = measured_trace(plan, ranks, "measured");
  REQUIRE(trace);
  CHECK(trace->slices.size() == plan.records.size());
  CHECK(trace->end == Approx(1500));
  // Of both handshakes rank 0's waits had to wait, and rank 1's did not.
  REQUIRE(trace->arrows.size() == 2);
  for (const Arrow& arrow : trace->arrows) CHECK(trace->slices[arrow.to].rank == 0);
  const bool opening = trace->slices[trace->arrows[0].to].source == 1;
  const Arrow& arrow = trace->arrows[opening ? 0 : 1];
  CHECK(trace->slices[arrow.from].rank == 1);
  CHECK(trace->slices[arrow.to].rank == 0);
  CHECK(trace->slices[arrow.to].source == 1);
  CHECK(trace->slices[arrow.to].begin == Approx(100));
  CHECK(trace->slices[arrow.to].waited() ==
        Approx(500));  // until 600, when the signal's step ended
  REQUIRE_FALSE(trace->path.empty());
  CHECK(trace->path.front().begin == 0);
  CHECK(trace->path.back().end == Approx(1500));
  for (size_t i = 1; i < trace->path.size(); ++i) {
    CHECK(trace->path[i].begin == trace->path[i - 1].end);
  }
}

TEST_CASE("a clock that counts from 1970 loses no nanosecond") {
  const cost::Timeline plan = plan_of(testing::exchange().program);
  const RankStamps stamps =
      exchange_stamps(1'793'000'000'000'000'100, {0, 10, 20, 30, 40, 50, 60}, 300);
  const auto trace = measured_trace(plan, {stamps, stamps}, "measured");
  REQUIRE(trace);
  CHECK(trace->end == 300);
}

TEST_CASE("a rank's clock may be ahead") {
  const TestProgram t = testing::exchange();
  const cost::Timeline plan = plan_of(t.program);
  const std::vector<uint64_t> at = {0, 100, 110, 120, 400, 410, 900};
  std::vector<RankStamps> ranks = {exchange_stamps(1000, at, 1000),
                                   exchange_stamps(9'000'000, at, 1000)};
  ranks[1].ahead_ns = 9'000'000 - 1000;
  const auto trace = measured_trace(plan, ranks, "measured");
  REQUIRE(trace);
  CHECK(trace->end == Approx(1000));
}

TEST_CASE("an op without data has no step in a block's program, and no slice") {
  const TestProgram t = testing::exchange();
  const cost::Timeline plan = plan_of(t.program);
  RankStamps without = stamps_of(0,
                                 {{step(StepKind::signal, 0), 0},
                                  {step(StepKind::wait, 1), 10},
                                  {step(StepKind::sync, 2), 20},
                                  {step(StepKind::sync, 4), 30},
                                  {step(StepKind::signal, 5), 40},
                                  {step(StepKind::wait, 6), 50}},
                                 60);
  const auto trace = measured_trace(plan, {without, without}, "measured");
  REQUIRE(trace);
  CHECK(trace->slices.size() == plan.records.size() - 2);
}

TEST_CASE("a sum and the function of its rows are one slice, done in one step or in several") {
  cost::Timeline plan;
  plan.records = {{.source = 0, .kind = StepKind::move_packets},
                  {.source = 1, .kind = StepKind::reduce_packets_apply},
                  {.source = 2, .kind = StepKind::signal}};
  const RankStamps apart = stamps_of(0,
                                     {{step(StepKind::move_packets, 0), 0},
                                      {step(StepKind::reduce_packets, 1), 10},
                                      {step(StepKind::sync, 1), 20},
                                      {step(StepKind::apply, 1), 30},
                                      {step(StepKind::sync, 1), 40},
                                      {step(StepKind::move_packets, 1), 50},
                                      {step(StepKind::signal, 2), 60}},
                                     70);
  const RankStamps at_once = stamps_of(0,
                                       {{step(StepKind::move_packets, 0), 0},
                                        {step(StepKind::reduce_packets_apply, 1), 10},
                                        {step(StepKind::signal, 2), 60}},
                                       70);
  for (const RankStamps& stamps : {apart, at_once}) {
    const auto trace = measured_trace(plan, {stamps}, "measured");
    REQUIRE(trace);
    REQUIRE(trace->slices.size() == 3);
    CHECK(trace->slices[1].kind == StepKind::reduce_packets_apply);
    CHECK(trace->slices[1].begin == 10);
    CHECK(trace->slices[1].end == 60);
  }
}

TEST_CASE("missing stamps are named") {
  const TestProgram t = testing::exchange();
  const cost::Timeline plan = plan_of(t.program);
  const RankStamps full = exchange_stamps(0, {0, 1, 2, 3, 4, 5, 6}, 10);
  const auto missing = [&](const std::vector<RankStamps>& ranks) {
    const auto trace = measured_trace(plan, ranks, "");
    return trace ? "nothing" : trace.error().text();
  };
  CHECK(missing({full}) == "there are no stamps of thread block 0 of rank 1");
  CHECK(missing({full, {}}) == "there are no stamps of thread block 0 of rank 1");
  const RankStamps cut =
      stamps_of(0, {{step(StepKind::signal, 0), 0}, {step(StepKind::wait, 1), 1}}, 10,
                device::kStampHead + 1);
  CHECK(missing({full, cut}) ==
        "thread block 0 of rank 1 has 2 stamps, of which 1 fit; a smaller message has fewer steps");
}

}  // namespace mscclc::timeline
