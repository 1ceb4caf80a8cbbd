// Flags as steps name them: where their words are, and when one is complete.
#include <catch2/catch.hpp>

#include "executor/block_programs.h"
#include "executor/interpreter/handlers_flags.h"

namespace mscclc {
namespace {

TEST_CASE("flags are words of their array, each raised as often as that says") {
  RankProgram rank;
  device::DeviceOp awaits{}, notifies{};
  awaits.kind = device::StepKind::await;
  awaits.count = 2;
  notifies.kind = device::StepKind::notify;
  notifies.first = 2;
  notifies.count = 1;
  rank.ops = {awaits, notifies};
  rank.block_begin = {0, 2};
  rank.targets = {1, 2, 4095};
  uint32_t narrow[3] = {};
  uint64_t wide[4093] = {};
  const BlockPrograms::Places::Flags arrays[] = {
      {.words = reinterpret_cast<uint8_t*>(narrow), .first = 0, .raises = 1u << 20},
      {.words = reinterpret_cast<uint8_t*>(wide), .first = 3, .bytes = 8, .of_system = true}};
  BlockPrograms::Places places;
  places.flags = arrays;
  BlockPrograms programs;
  REQUIRE(programs.pack(rank, places, WaitSlots(rank)));
  CHECK(programs.uses() == device::kUsesFlags);
  const auto* const header = reinterpret_cast<const device::StepHeader*>(programs.data());
  const device::Steps steps(header);
  REQUIRE(header->steps == 2);
  REQUIRE(header->targets == 3);
  for (const uint32_t i : {0u, 1u}) {
    const device::StepTarget& target = steps.targets[i];
    CHECK(reinterpret_cast<uint32_t*>(target.address) == narrow + 1 + i);
    CHECK(target.flags == 0);
    CHECK(device::flag_number_of(target.index) == 1 + i);
    CHECK(device::flag_goal(target.index, 0) == 1u << 20);
    CHECK(device::flag_goal(target.index, 4096) == 4097ull << 20);
  }
  const device::StepTarget& last = steps.targets[2];
  CHECK(last.address == wide + 4092);
  CHECK(last.flags == (device::kWideFlag | device::kSystemFlag));
  CHECK(device::flag_number_of(last.index) == 4095);
  CHECK(device::flag_goal(last.index, 6) == 7);
}

TEST_CASE("a flag is complete from its goal on, also where its word wraps") {
  CHECK_FALSE(device::is_complete(2, 3, false));
  CHECK(device::is_complete(3, 3, false));
  CHECK(device::is_complete(4, 3, false));
  CHECK_FALSE(device::is_complete(0xffffffffu, uint64_t{1} << 32, false));
  CHECK(device::is_complete(0, uint64_t{1} << 32, false));
  CHECK(device::is_complete(5, (uint64_t{1} << 32) + 5, false));
  CHECK_FALSE(device::is_complete(5, (uint64_t{1} << 32) + 5, true));
  CHECK_FALSE(device::is_complete(~uint64_t{0}, 0, true));
  CHECK(device::is_complete(0, 0, true));
}

}  // namespace
}  // namespace mscclc
