// Several plans on the same ranks: what they share, and that each call is checked.
#include "executor/simulator/cluster_set.h"

#include <catch2/catch.hpp>

#include "executor/simulator/run.h"
#include "executor/testing/test_plans.h"

namespace mscclc {
namespace {

using namespace testing;

std::string text_of_set(const Diagnostics& d) { return render_text(d, Sources{}, 100); }

RunResult run_set(const std::vector<PlacedPlan>& plans, const RunSpec& spec,
                  Diagnostics& diagnostics) {
  return Simulator(plans).run(spec, diagnostics);
}

/// All kinds of schedules.
std::vector<RunSpec> schedules(const RunSpec& spec) {
  std::vector<RunSpec> all(12, spec);
  for (uint32_t i = 0; i < all.size(); ++i) {
    all[i].schedule_seed = i;
    if (i % 2 != 0) all[i].adversary = Adversary{.strands = 1 + i % 3};
  }
  return all;
}

TEST_CASE("plans in turn, in any order and schedule") {
  const TestProgram packets = one_shot(3, 1, PacketFormat::LL16, 3), sums = with_syncs(two_shot(3));
  const std::vector<PlacedPlan> plans = {{&packets.program, "a", {0, 1, 2}},
                                         {&sums.program, "b", {2, 0, 1}}};
  for (const std::vector<uint32_t>& calls :
       {std::vector<uint32_t>{0, 1, 1, 0, 0, 1}, {1, 0, 1, 0}, {0, 0, 0, 0}}) {
    for (const RunSpec& spec :
         schedules({.plan_bytes = {1000, 3000}, .order = {calls, calls, calls}})) {
      Diagnostics diagnostics;
      const RunResult result = run_set(plans, spec, diagnostics);
      INFO(text_of_set(diagnostics));
      CHECK(result.status == RunStatus::right);
      REQUIRE(result.plans.size() == 2);
      CHECK(result.plans[0].bytes == 1000);
      CHECK(result.plans[1].bytes == 3000);
    }
  }
}

TEST_CASE("a port and its queue are shared") {
  TestProgram t = exchange(ChannelKind::port);
  for (uint32_t r = 0; r < 2; ++r) add_op(t, r, 0, OpKind::flush, {end_of(0)});
  const std::vector<PlacedPlan> plans = {{&t.program, "a", {0, 1}}, {&t.program, "b", {1, 0}}};
  const std::vector<uint32_t> calls = {0, 1, 1, 0, 1};
  for (const RunSpec& spec : schedules({.plan_bytes = {640, 4}, .order = {calls, calls}})) {
    Diagnostics diagnostics;
    CHECK(run_set(plans, spec, diagnostics).status == RunStatus::right);
  }
}

TEST_CASE("a signal of one plan lets another go on") {
  // Rank 0 of b signals where a waits: a sees it if the n-th channels are one.
  TestProgram waits(2, 1), signals(2, 1);
  for (TestProgram* t : {&waits, &signals}) {
    t->program.contract.kind = CollectiveKind::barrier;
    for (Rank& rank : t->program.ranks)
      rank.buffers[kInput].chunks = rank.buffers[kOutput].chunks = 0;
    connect_all(*t, ChannelKind::memory);
  }
  add_op(waits, 1, 0, OpKind::wait, {end_of(0)});
  add_op(signals, 0, 0, OpKind::signal, {end_of(0)});
  const std::vector<PlacedPlan> plans = {{&waits.program, "a", {0, 1}},
                                         {&signals.program, "b", {0, 1}}};
  const RunSpec spec{.plan_bytes = {0, 0}, .order = {{1, 0}, {1, 0}}};
  Diagnostics diagnostics;
  CHECK(run_set(plans, spec, diagnostics).status != RunStatus::hung);
  // A pair of ranks of its own has none.
  TestProgram more = signals;
  const std::vector<PlacedPlan> apart = {{&waits.program, "a", {0, 1}},
                                         {&more.program, "b", {2, 3}}};
  CHECK(run_set(apart, {.plan_bytes = {0, 0}, .order = {{0}, {0}, {1}, {1}}}, diagnostics).status ==
        RunStatus::hung);
}

TEST_CASE("what hangs is reported by plan and call") {
  const TestProgram t = exchange();
  const std::vector<PlacedPlan> plans = {
      {&t.program, "a", {0, 1}}, {&t.program, "b", {1, 2}}, {&t.program, "c", {2, 0}}};
  const RunSpec circle{.plan_bytes = {64, 64, 64}, .order = {{2, 0}, {0, 1}, {1, 2}}};
  Diagnostics diagnostics;
  CHECK(run_set(plans, circle, diagnostics).status == RunStatus::hung);
  CHECK(
      text_of_set(diagnostics)
          .find("error: the plans hang: 3 of 6 thread blocks wait for something that never comes\n"
                "note: rank 1, tb 0 of 'c': 'wait ch[0] relaxed' waits for signal 1 at 'ch[0]'; "
                "0 came; "
                "rank 0 should send it from 'ch[1]': tb 0 of rank 0, whose next call has not "
                "begun\n") == 0);
  const RunSpec agreed{.plan_bytes = {64, 64, 64}, .order = {{0, 2}, {0, 1}, {1, 2}}};
  Diagnostics none;
  CHECK(run_set(plans, agreed, none).status == RunStatus::right);
}

TEST_CASE("what is wrong is reported by plan") {
  TestProgram t(2, 1);  // writes nothing
  for (uint32_t r = 0; r < 2; ++r) add_op(t, r, 0, OpKind::sync, {});
  const TestProgram right = exchange();
  const std::vector<PlacedPlan> plans = {{&right.program, "a", {0, 1}}, {&t.program, "b", {1, 2}}};
  Diagnostics diagnostics;
  const RunSpec spec{.plan_bytes = {64, 16}, .order = {{0, 0}, {0, 0, 1}, {1}}};
  const RunResult result = run_set(plans, spec, diagnostics);
  CHECK(result.status == RunStatus::wrong);
  CHECK(result.plans[0].wrong == 0);
  CHECK(result.plans[1].wrong == result.wrong);
  // It is rank 0 of b, and the third call of its rank.
  CHECK(text_of_set(diagnostics)
            .find("error: rank 0 of 'b': 4 wrong elements in 'output'\nnote: call "
                  "2, element 0: expected ") == 0);
}

/// An allreduce over shared scratch, of one block.
TestProgram sharing(uint32_t copies) {
  TestProgram t = one_shot(2, 1, PacketFormat::LL16, copies);
  t.program.launch.reuse_scratch = true;
  return t;
}

TEST_CASE("scratch is one where plans say so") {
  const TestProgram t = sharing(2), other = sharing(3);
  const std::vector<PlacedPlan> plans = {{&t.program, "a", {0, 1}}, {&other.program, "b", {0, 1}}};
  ClusterSet set(plans);
  Diagnostics diagnostics;
  REQUIRE(set.build(diagnostics));
  for (size_t p = 0; p < 2; ++p) REQUIRE(set[p].fit({.part_bytes = 1000}, 1000, diagnostics));
  REQUIRE(set.prepare({false, false}, true, {{0, 1}, {0, 1}}, diagnostics));
  for (uint32_t r = 0; r < 2; ++r) {
    CHECK(set[0].data(r, kFirstScratch) == set[1].data(r, kFirstScratch));
    CHECK(set[0].data(r, kInput) != set[1].data(r, kInput));
    CHECK(set[0].scratch_bytes(r) < set[1].scratch_bytes(r));
  }
  CHECK(set.check_guards(diagnostics));
  set[1].data(1, kFirstScratch)[set[1].scratch_bytes(1)] = 1;
  CHECK(!set.check_guards(diagnostics));
  CHECK(text_of_set(diagnostics) ==
        "error: rank 1: bytes after the shared scratch have been written\n");
}

TEST_CASE("chunks that are shared must be equally long") {
  const TestProgram t = sharing(2);
  const std::vector<PlacedPlan> plans = {{&t.program, "a", {0, 1}}, {&t.program, "b", {0, 1}}};
  RunSpec spec{.plan_bytes = {64, 64}, .order = {{0, 1}, {0, 1}}};
  Diagnostics diagnostics;
  CHECK(run_set(plans, spec, diagnostics).status == RunStatus::right);
  spec.plan_bytes = {64, 640};
  CHECK(run_set(plans, spec, diagnostics).status == RunStatus::refused);
  CHECK(text_of_set(diagnostics) ==
        "error: 'a' and 'b' share chunks of scratch, which at these sizes of messages are not "
        "equally long\n");
  // So they are if scratch is laid out for the larger message: calls of one plan differ in size.
  spec.capacity = 640;
  spec.order = {{0, 1, 0, 0, 1, 0}, {0, 1, 0, 0, 1, 0}};
  for (const RunSpec& drawn : schedules(spec)) {
    CHECK(run_set(plans, drawn, diagnostics).status == RunStatus::right);
  }
}

}  // namespace
}  // namespace mscclc
