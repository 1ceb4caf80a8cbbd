// Every program of plans/examples: proved, and run on the simulator, plainly and with an adversary.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>

#include "ir/support/sanitized.h"
#include "passes/prove/prove.h"
#include "tests/library/library.h"

namespace mscclc {
namespace {

constexpr size_t kMaxRanksRun = testing::if_sanitized(5, 16);
constexpr uint64_t kSeeds = testing::if_sanitized(2, 10);

/// A size that the program takes: any, or one whose chunks are equally long.
uint64_t size_of(const CompiledWorld& world, uint64_t seed, Dtype dtype) {
  const Program& program = world.program();
  if (program.contract.even_only) {
    return program.contract.part_chunks() * program.launch.align * (seed * 7 % 40);
  }
  return world.bytes(run_sizes()[seed % 6], dtype);
}

/// Runs as the seed says: each takes other sizes, types, reductions and schedules.
RunSpec spec_of(const CompiledWorld& world, uint64_t seed) {
  const auto pick = [seed](const auto& list) { return list[seed % list.size()]; };
  const Dtype dtype = pick(world.dtypes());
  return {.bytes = size_of(world, seed, dtype),
          .dtype = dtype,
          .op = pick(world.reductions()),
          .in_place = pick(world.in_place()),
          .iterations = kCalls,
          .schedule_seed = seed};
}

void check_world(std::string_view name, const Defines& defines) {
  INFO(name << ' ' << text(defines));
  CompiledWorld world(name, defines);
  REQUIRE(world.errors() == "");
  Diagnostics diagnostics;
  CHECK(prove(world.program(), diagnostics).proved);
  if (world.program().ranks.size() > kMaxRanksRun) return;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    RunSpec spec = spec_of(world, seed);
    CHECK(world.run(spec) == "");
    if (spec.bytes > 5000) continue;  // its accesses are traced one by one
    spec.adversary = Adversary{.strands = 2 + static_cast<uint32_t>(seed % 2), .holds = {}};
    CHECK(world.run(spec) == "");
  }
}

TEST_CASE("examples are proved, and give the promised result") {
  for (const LibraryProgram& entry : examples()) {
    DYNAMIC_SECTION(entry.name) {
      for (const Defines& defines : entry.worlds) check_world(entry.name, defines);
    }
  }
}

TEST_CASE("every example is tried") {
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator("plans/examples")) {
    const std::string name = "examples/" + entry.path().stem().string();
    INFO(name);
    CHECK(std::ranges::count(examples(), name, &LibraryProgram::name) == 1);
    ++files;
  }
  CHECK(files == examples().size());
}

}  // namespace
}  // namespace mscclc
