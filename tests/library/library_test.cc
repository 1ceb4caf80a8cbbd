// Every library program on the simulator, each output element compared with what the collective
// promises. Of all worlds x data types x reductions x in place or not x sizes x schedules a part
// runs here, in which every pair of choices occurs; library_full runs all of it.
#include "tests/library/library.h"

#include <catch2/catch.hpp>
#include <map>

#include "ir/support/sanitized.h"

namespace mscclc {
namespace {

TEST_CASE("pairwise rows hold every pair of levels") {
  const std::vector<uint32_t> levels = {3, 1, 4, 2};
  const auto rows = pairwise(levels);
  REQUIRE(rows.size() < 3 * 1 * 4 * 2);
  for (size_t i = 0; i < levels.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      std::map<std::pair<uint32_t, uint32_t>, int> seen;
      for (const auto& row : rows) ++seen[{row[i], row[j]}];
      CHECK(seen.size() == static_cast<size_t>(levels[i]) * levels[j]);
    }
  }
}

/// The longest messages run in worlds of up to four ranks, where each chunk of them is longest;
/// larger worlds take this size in their place. With a sanitizer it is too long for these, too.
constexpr RunSize kLong = {0, 65544};

bool longer(const CompiledWorld& world, const RunSize& size, uint64_t most) {
  return world.program().ranks.size() * size.bytes > most;
}

/// Some schedules stand for all, with a sanitizer small worlds, too: they go through the same code.
constexpr int kMaxRanksTried = testing::if_sanitized(6, 16);
constexpr uint32_t kSeedsTried = testing::amount(4, 10, static_cast<int>(kScheduleSeeds));

/// Runs a covering part of the choices of one program.
void check_program(const LibraryProgram& entry) {
  std::vector<CompiledWorld> worlds;
  std::vector<std::string> names;
  for (const Defines& defines : entry.worlds) {
    if (std::stoi(defines[0].second) > kMaxRanksTried) continue;
    worlds.emplace_back(entry.name, defines);
    names.push_back(text(defines));
    INFO(names.back());
    REQUIRE(worlds.back().errors() == "");
  }
  const std::vector<Dtype> dtypes = worlds[0].dtypes();
  const std::vector<ReduceOp> ops = worlds[0].reductions();
  const std::vector<bool> in_place = worlds[0].in_place();
  const auto count = [](const auto& list) { return static_cast<uint32_t>(list.size()); };
  for (const auto& row : pairwise({count(worlds), count(dtypes), count(ops), count(in_place),
                                   count(run_sizes()), kSeedsTried})) {
    INFO(names[row[0]]);
    CompiledWorld& world = worlds[row[0]];
    RunSize size = run_sizes()[row[4]];
    if (longer(world, size, 4 << 20)) size = kLong;
    if (testing::kSanitized && longer(world, size, 300000)) continue;
    CHECK(world.run({.bytes = world.bytes(size, dtypes[row[1]]),
                     .dtype = dtypes[row[1]],
                     .op = ops[row[2]],
                     .in_place = in_place[row[3]],
                     .iterations = kCalls,
                     .schedule_seed = row[5]}) == "");
  }
}

TEST_CASE("library programs give the promised result") {
  for (const LibraryProgram& entry : library()) {
    DYNAMIC_SECTION(entry.name) { check_program(entry); }
  }
}

}  // namespace
}  // namespace mscclc
