// The library under the simulator's adversarial mode: strands, late accesses, ranks that are calls
// ahead. Its programs are right, so nothing may ever go wrong.
#include <catch2/catch.hpp>

#include "ir/support/sanitized.h"
#include "tests/library/library.h"

namespace mscclc {
namespace {

constexpr uint64_t kMaxRanks = testing::if_sanitized(4, 8);
constexpr uint64_t kSeeds = testing::if_sanitized(2, 12);

TEST_CASE("the library is right whatever is late") {
  for (const LibraryProgram& entry : library()) {
    for (const Defines& defines : entry.worlds) {
      CompiledWorld world(entry.name, defines);
      REQUIRE(world.errors().empty());
      if (world.program().ranks.size() > kMaxRanks) continue;
      const std::vector<bool> in_place = world.in_place();
      const std::vector<Dtype> dtypes = world.dtypes();
      for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
        const Dtype dtype = dtypes[seed % dtypes.size()];
        const RunSize size{1 + seed * 37 % 150, 0};
        const RunSpec spec{
            .bytes = world.bytes(size, dtype),
            .dtype = dtype,
            .op = world.reductions().front(),
            .in_place = in_place[seed % in_place.size()],
            .iterations = 3,
            .schedule_seed = seed,
            .adversary = Adversary{.strands = 2 + static_cast<uint32_t>(seed % 2), .holds = {}}};
        INFO(entry.name << ' ' << text(defines) << ' ' << text(spec));
        CHECK(world.run(spec) == "");
      }
    }
  }
}

}  // namespace
}  // namespace mscclc
