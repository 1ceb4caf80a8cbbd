#include "runtime/core/device/switches.h"

#include <catch2/catch.hpp>

#include "executor/testing/op_plans.h"

namespace mscclc {
namespace {

using Teams = std::vector<std::vector<uint32_t>>;

/// Regions at made-up addresses; region 2 has none.
class TestTeam final : public SwitchTeam {
 public:
  uint8_t* address(size_t region) const override {
    return region == 2 ? nullptr : reinterpret_cast<uint8_t*>(0x1000000 * (region + 1));
  }
};

/// Rank 1 of a plan with a switch over ranks 0, 1, 2, lowered.
struct Fixture {
  explicit Fixture(const std::string& name) {
    for (const testing::OpPlan& plan : testing::op_plans()) {
      if (plan.name == name) program = plan.build(PacketFormat::none).program;
    }
    REQUIRE(program.ranks.size() > 1);
    Diagnostics diagnostics;
    REQUIRE(lower_rank(program, 1, lowered, diagnostics));
    bases.resize(lowered.bases.size());
  }
  bool join(bool there = true) {
    return switches.join(
        program, 1, lowered,
        [&](const std::vector<uint32_t>& members, std::unique_ptr<SwitchTeam>& team) {
          joined.push_back(members);
          if (there) team = std::make_unique<TestTeam>();
          return true;
        });
  }
  /// multicast of all bases that have it.
  std::vector<uint8_t*> filled(const Switches::FindSpot& spot) {
    switches.fill(
        lowered, spot,
        [&](uint64_t buffer, const Switches::Members& members) -> const SwitchTeam* {
          CHECK(members == Switches::Members{0, 1, 2});
          return buffer == 7 ? &of_buffer : nullptr;
        },
        bases);
    std::vector<uint8_t*> addresses;
    for (const device::BaseAddress& base : bases) {
      if (base.multicast != nullptr) addresses.push_back(base.multicast);
    }
    return addresses;
  }
  Program program;
  RankProgram lowered;
  Switches switches;
  Teams joined;
  TestTeam of_buffer;  ///< 7
  std::vector<device::BaseAddress> bases;
};

Switches::FindSpot at(size_t region, uint64_t offset) {
  return [=](uint32_t, uint32_t) { return Switches::Spot{region, offset}; };
}

TEST_CASE("switches: a team joins once, whatever its channels") {
  Fixture f("switch_broadcast");
  CHECK(f.join());
  CHECK(f.joined == Teams{{0, 1, 2}});
}

TEST_CASE("switches: plans without switches join nothing") {
  Fixture f("put");
  CHECK(f.join());
  CHECK(f.joined.empty());
  CHECK(f.filled(at(0, 0)).empty());
}

TEST_CASE("switches: operands at one spot of all members have an address at the switch") {
  Fixture f("switch_broadcast");
  f.join();
  CHECK(f.filled(at(1, 48)) == std::vector<uint8_t*>{reinterpret_cast<uint8_t*>(0x2000030)});
  // It stands with the first member, rank 0's output.
  for (size_t i = 0; i < f.bases.size(); ++i) {
    if (f.bases[i].multicast != nullptr) CHECK(f.lowered.bases[i].rank == 0);
  }
}

TEST_CASE("switches: registered buffers have teams of their own") {
  Fixture f("switch_broadcast");
  f.join(false);
  const auto in_buffer = [](uint64_t number) {
    return [=](uint32_t, uint32_t) { return Switches::Spot{number, 48, true}; };
  };
  CHECK(f.filled(in_buffer(8)).empty());
  CHECK(f.filled(in_buffer(7)) == std::vector<uint8_t*>{reinterpret_cast<uint8_t*>(0x1000030)});
}

TEST_CASE("switches: source and destination of one op") {
  Fixture f("switch_reduce_broadcast");
  f.join();
  const auto spot = [](uint32_t, uint32_t buffer) {
    return Switches::Spot{buffer == kInput ? size_t{0} : size_t{1}, 16};
  };
  CHECK(f.filled(spot).size() == 2);
}

TEST_CASE("switches: operands without an address") {
  const auto count = [](const Switches::FindSpot& spot, bool there = true) {
    Fixture f("switch_broadcast");
    f.join(there);
    return f.filled(spot).size();
  };
  CHECK(count(at(0, 0)) == 1);
  CHECK(count(at(0, 0), false) == 0);  // the team cannot
  CHECK(count(at(2, 0)) == 0);         // the region cannot
  CHECK(count([](uint32_t, uint32_t) { return std::nullopt; }) == 0);
  CHECK(count([](uint32_t rank, uint32_t) {
          return Switches::Spot{0, rank == 2 ? 16u : 0u};
        }) == 0);
  CHECK(count([](uint32_t rank, uint32_t) { return Switches::Spot{7, 0, rank != 2}; }) == 0);
}

TEST_CASE("switches: a failed join is reported") {
  Fixture f("switch_broadcast");
  CHECK(!f.switches.join(
      f.program, 1, f.lowered,
      [](const std::vector<uint32_t>&, std::unique_ptr<SwitchTeam>&) { return false; }));
}

}  // namespace
}  // namespace mscclc
