// Teams at a switch, with a thread per rank, on the fake driver.
#include "runtime/devices/cuda/memory/switch_team.h"

#include <dirent.h>

#include <thread>

#include "ir/support/sanitized.h"
#include "runtime/api/in_process.h"
#include "runtime/devices/cuda/driver/stream.h"
#include "tests/fakes/cuda/test_world.h"

namespace mscclc::cuda {
namespace {

constexpr uint64_t kGranule = 131072;  // of multicast, in the fake

/// A rank that joins two regions: `scratch` bytes, and `phase` bytes into 3 granules.
struct RankSetup {
  bool multicast = true;
  uint64_t scratch = 5000;
  uint64_t phase = 0;
};

/// What became of a rank.
struct Outcome {
  bool talked = false, joined = false;
  std::vector<uint8_t*> addresses;
  uint8_t* none = nullptr;   ///< of the region that ranks do not have
  std::vector<int> seen[2];  ///< first bytes of all members at both addresses
  std::string text;
};

/// All ranks, each a process with its own GPU, join once. Every rank's regions hold its number + 1
/// and its number + 101.
std::vector<Outcome> join(World& world, const std::vector<RankSetup>& ranks,
                          const std::vector<uint32_t>& members, bool one_process = false) {
  const auto size = static_cast<uint32_t>(ranks.size());
  const auto bootstraps = make_in_process_bootstraps(size, std::chrono::seconds(300));
  std::vector<Outcome> outcomes(size);
  std::vector<std::thread> threads;
  for (uint32_t r = 0; r < size; ++r) {
    threads.emplace_back([&, r] {
      const int process = one_process ? 0 : static_cast<int>(r);
      FakeDriver::enter(process);
      Outcome& outcome = outcomes[r];
      Bootstrap& bootstrap = *bootstraps[r];
      Diagnostics d;
      const auto device = world.open(process, static_cast<int>(r), d, ranks[r].multicast);
      std::unique_ptr<Memory> scratch, buffer;
      if (device != nullptr) {
        scratch = device->allocate(ranks[r].scratch, "scratch", d);
        buffer = device->allocate(3 * kGranule, "buffer", d);
      }
      // A rank that has no memory fails before it joins: here the others learn it by a meeting.
      std::vector<std::vector<uint8_t>> all;
      const std::vector<uint8_t> ready = {static_cast<uint8_t>(scratch && buffer)};
      bool go_on = bootstrap.all_gather(ready, "ready", all, d);
      for (const auto& one : all) go_on = go_on && one[0] == 1;
      if (!go_on) return;
      const auto mark = static_cast<uint8_t>(r + 1);
      world.fake.set_bytes(address_of(scratch->data()), {mark});
      world.fake.set_bytes(address_of(buffer->data()) + ranks[r].phase,
                           {static_cast<uint8_t>(mark + 100)});
      std::unique_ptr<SwitchTeam> team;
      outcome.talked = device->join_switch(bootstrap, members,
                                           {{scratch->data(), ranks[r].scratch},
                                            {buffer->data() + ranks[r].phase, 1000},
                                            {nullptr, 0}},
                                           team, d);
      outcome.joined = team != nullptr;
      outcome.none = team != nullptr ? team->address(2) : nullptr;
      for (size_t i = 0; i < 2 && team != nullptr; ++i) {
        outcome.addresses.push_back(team->address(i));
        if (team->address(i) == nullptr) continue;
        outcome.seen[i] = world.fake.multicast_bytes(address_of(team->address(i)));
      }
      outcome.text = text_of(d);
      outcome.talked &= bootstrap.all_gather({}, "end", all, d);
    });
  }
  for (std::thread& thread : threads) thread.join();
  FakeDriver::enter(0);
  return outcomes;
}

const FakeOptions kSwitch = {.devices = 4, .multicast = true};

TEST_CASE("switch team: one address per region reaches all members' memory") {
  for (const bool one_process : {false, true}) {
    World world(kSwitch);
    const auto outcomes = join(world, {{}, {}, {}, {}}, {0, 1, 2, 3}, one_process);
    for (const Outcome& outcome : outcomes) {
      CHECK(outcome.text == "");
      REQUIRE(outcome.joined);
      CHECK(outcome.seen[0] == std::vector<int>{1, 2, 3, 4});
      CHECK(outcome.seen[1] == std::vector<int>{101, 102, 103, 104});
      CHECK(outcome.none == nullptr);
    }
    CHECK(world.fake.calls("MulticastCreate") == 1);
    CHECK(world.fake.calls("MulticastBindMem") == 8);
    world.check_clean();
  }
}

TEST_CASE("switch team: some ranks, regions of different sizes") {
  World world(kSwitch);
  const auto outcomes =
      join(world, {{}, {.scratch = 10}, {.scratch = 3 * kGranule}, {}}, {2, 1, 3});
  CHECK(!outcomes[0].joined);
  CHECK(outcomes[0].talked);
  for (const uint32_t r : {1, 2, 3}) {
    CHECK(outcomes[r].seen[0] == std::vector<int>{2, 3, 4});
    CHECK(outcomes[r].seen[1] == std::vector<int>{102, 103, 104});
  }
  world.check_clean();
}

TEST_CASE("switch team: a region at the same place of a granule on all ranks") {
  World world(kSwitch);
  const uint64_t at = kGranule + 4096;
  const auto outcomes = join(world, {{.phase = at}, {.phase = at - kGranule}}, {0, 1});
  for (const uint32_t r : {0, 1}) CHECK(outcomes[r].seen[1] == std::vector<int>{101, 102});
  world.check_clean();
}

TEST_CASE("switch team: a region at different places has no address, others have") {
  World world(kSwitch);
  const auto outcomes = join(world, {{.phase = 16}, {.phase = 32}}, {0, 1});
  for (const uint32_t r : {0, 1}) {
    REQUIRE(outcomes[r].joined);
    CHECK(outcomes[r].addresses[1] == nullptr);
    CHECK(outcomes[r].seen[0] == std::vector<int>{1, 2});
  }
  world.check_clean();
}

TEST_CASE("switch team: nothing of multicast is called unless it is asked for and there") {
  struct Case {
    bool there, asked;
  };
  for (const Case c : {Case{false, false}, Case{false, true}, Case{true, false}}) {
    FakeOptions options = kSwitch;
    options.multicast = c.there;
    World world(options);
    const RankSetup rank = {.multicast = c.asked};
    for (const Outcome& outcome : join(world, {rank, rank}, {0, 1})) {
      CHECK(outcome.talked);
      CHECK(!outcome.joined);
      CHECK(outcome.text == "");
    }
    for (const char* function :
         {"MulticastCreate", "MulticastGetGranularity", "MulticastAddDevice", "MulticastBindMem"}) {
      CHECK(world.fake.calls(function) == 0);
    }
    world.check_clean();
  }
}

TEST_CASE("switch team: if one rank does not ask for it, none uses it") {
  World world(kSwitch);
  const auto outcomes = join(world, {{}, {.multicast = false}}, {0, 1});
  CHECK(!outcomes[0].joined);
  CHECK(outcomes[0].text ==
        "multicast-unavailable: ranks 0, 1 do not use multicast: rank 1 cannot\n"
        "  multicast is off (MSCCLC_MULTICAST=1 asks for it), or not there\n");
  CHECK(outcomes[1].text == "");
  CHECK(world.fake.calls("MulticastCreate") == 0);
  world.check_clean();
}

TEST_CASE("switch team: fabric handles that are there in name only") {
  FakeOptions options = kSwitch;
  options.fabric = true;
  for (const bool imex : {true, false}) {
    options.imex = imex;
    World world(options);
    for (const Outcome& outcome : join(world, {{}, {}}, {0, 1})) CHECK(outcome.joined);
    world.check_clean();
  }
}

TEST_CASE("switch team: memory that is not shareable is not bound") {
  FakeOptions options = kSwitch;
  options.mappings = false;
  World world(options);
  const auto outcomes = join(world, {{}, {}}, {0, 1});
  CHECK(!outcomes[0].joined);
  CHECK(outcomes[0].text.find("no region can be joined") != std::string::npos);
  world.check_clean();
}

size_t descriptors_held() {
  size_t n = 0;
  DIR* folder = opendir("/proc/self/fd");
  while (readdir(folder) != nullptr) ++n;
  closedir(folder);
  return n;
}

TEST_CASE("switch team: every call of the driver fails once") {
  const size_t before = descriptors_held();
  uint64_t calls = 0;
  {
    World world(kSwitch);
    join(world, {{}, {}, {}}, {0, 2});
    calls = world.fake.calls();
  }
  int fallen_back = 0;
  for (uint64_t n = 1; n <= calls; ++n) {
    World world(kSwitch);
    world.fake.fail_call(n);
    const auto outcomes = join(world, {{}, {}, {}}, {0, 2});
    INFO("call " << n << " of " << calls << "\n" << outcomes[0].text << outcomes[2].text);
    CHECK(outcomes[0].talked == outcomes[2].talked);
    CHECK(outcomes[0].joined == outcomes[2].joined);
    CHECK(!outcomes[1].joined);
    if (outcomes[0].talked && !outcomes[0].joined) {
      ++fallen_back;
      CHECK(outcomes[0].text.find("multicast-unavailable") != std::string::npos);
    }
    world.check_clean();
  }
  CHECK(fallen_back > 10);
  CHECK(descriptors_held() == before);
}

TEST_CASE("switch team: many teams leave nothing") {
  const size_t before = descriptors_held();
  World world(kSwitch);
  for (int i = 0; i < mscclc::testing::if_sanitized(100, 1000); ++i) {
    const auto outcomes = join(world, {{}, {}}, {0, 1});
    REQUIRE(outcomes[0].joined);
  }
  world.check_clean();
  CHECK(world.fake.allocated(0) == 0);
  CHECK(descriptors_held() == before);
}

}  // namespace
}  // namespace mscclc::cuda
