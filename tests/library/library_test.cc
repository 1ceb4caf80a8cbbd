// Every library program on the simulator, each output element compared with what the collective
// promises. Of all worlds x data types x reductions x in place or not x sizes x schedules a part
// runs here, in which every pair of choices occurs; library_full runs all of it.
#include "tests/library/library.h"

#include <catch2/catch.hpp>
#include <map>

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

#ifdef MSCCLC_SANITIZED
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

/// Under a sanitizer long messages in large worlds are left out.
bool too_long(const CompiledWorld& world, const RunSize& size) {
  return kSanitized && world.program().ranks.size() * size.bytes > 300000;
}

/// Runs a covering part of the choices of one program.
void check_program(const LibraryProgram& entry) {
  std::vector<CompiledWorld> worlds;
  for (const Defines& defines : entry.worlds) {
    worlds.emplace_back(entry.name, defines);
    INFO(text(defines));
    REQUIRE(worlds.back().errors() == "");
  }
  const std::vector<Dtype> dtypes = worlds[0].dtypes();
  const std::vector<ReduceOp> ops = worlds[0].reductions();
  const std::vector<bool> in_place = worlds[0].in_place();
  const auto count = [](const auto& list) { return static_cast<uint32_t>(list.size()); };
  for (const auto& row : pairwise({count(worlds), count(dtypes), count(ops), count(in_place),
                                   count(run_sizes()), static_cast<uint32_t>(kScheduleSeeds)})) {
    INFO(text(entry.worlds[row[0]]));
    CompiledWorld& world = worlds[row[0]];
    if (too_long(world, run_sizes()[row[4]])) continue;
    CHECK(world.run({.bytes = world.bytes(run_sizes()[row[4]], dtypes[row[1]]),
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
