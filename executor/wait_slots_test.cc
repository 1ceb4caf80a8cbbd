// Which waits of a block follow from the number of the call, and which it counts.
#include <catch2/catch.hpp>
#include <vector>

#include "executor/block_programs.h"
#include "executor/testing/fitted_rank.h"
#include "executor/testing/test_plans.h"

namespace mscclc {
namespace {

using namespace testing;
using device::StepKind;

/// The slots of all waits of a rank, in order.
std::vector<WaitSlots::Slot> slots_of(const RankProgram& rank, const WaitSlots& slots) {
  std::vector<WaitSlots::Slot> out;
  for (const device::DeviceOp& op : rank.ops) {
    if (op.kind != StepKind::wait) continue;
    for (uint32_t i = 0; i < op.count; ++i) out.push_back(slots.of_target(op.first + i));
  }
  return out;
}

TEST_CASE("signals for which a block alone waits follow from the number of the call") {
  TestProgram t = exchange();  // two waits at one end
  FittedRank p(t, 0, 4096);
  const WaitSlots slots(*p.rank);
  CHECK(slots.per_block() == 1);
  const std::vector<WaitSlots::Slot> waits = slots_of(*p.rank, slots);
  REQUIRE(waits.size() == 2);
  for (uint64_t call = 0, taken = 0; call < 3; ++call) {
    for (const WaitSlots::Slot& wait : waits) {
      REQUIRE(wait.counted);
      CHECK(device::taken_before(wait.slot, call) == taken++);
    }
  }
}

TEST_CASE("a block counts the signals for which it alone waits in a pipeline") {
  TestProgram t = exchange();
  t.program.loops.push_back({1024, 1});
  t.program.ranks[0].ops.back().loop = 0;
  FittedRank p(t, 0, 4096);
  const WaitSlots slots(*p.rank);
  CHECK(slots.per_block() == 2);
  for (const WaitSlots::Slot& wait : slots_of(*p.rank, slots)) {
    CHECK(!wait.counted);
    CHECK(wait.slot == 1);
  }
}

TEST_CASE("no block owns the count of an end at which several wait") {
  TestProgram t = exchange();
  add_op(t, 0, 1, OpKind::wait, {end_of(0)});
  FittedRank p(t, 0, 4096);
  const WaitSlots slots(*p.rank);
  for (const WaitSlots::Slot& wait : slots_of(*p.rank, slots)) {
    CHECK(!wait.counted);
    CHECK(wait.slot == device::kNoSlot);
  }
}

}  // namespace
}  // namespace mscclc
