// The probes: all compile and are proved right, within a machine's limits.
#include "tools/calibrate/probes.h"

#include <catch2/catch.hpp>
#include <set>

#include "passes/prove/prove.h"

namespace mscclc::calibrate {
namespace {

uint32_t most_blocks(const Program& program) {
  uint32_t most = 0;
  for (const Rank& rank : program.ranks) most = std::max(most, rank.blocks);
  return most;
}

void check_all(const ProbeLimits& limits) {
  std::set<std::string> seen;
  for (const Probe& probe : probes_for(limits)) {
    INFO(probe.name());
    CHECK(probe.bytes <= limits.max_bytes);
    if (!seen.insert(probe.name()).second) continue;
    Diagnostics diagnostics;
    const auto program = compile_probe(probe, diagnostics);
    INFO(render_text(diagnostics, Sources{}));
    REQUIRE(program != nullptr);
    CHECK(program->ranks.size() == limits.ranks);
    CHECK(most_blocks(*program) <= limits.max_blocks);
    CHECK(prove(*program, diagnostics).proved);
  }
  CHECK(seen.size() >= 5);
}

}  // namespace

TEST_CASE("every probe is a proved program") {
  check_all({});
  check_all({.ranks = 3, .max_bytes = 1 << 20, .max_blocks = 16});
  check_all({.ranks = 4, .lines = false});
  check_all({.network = true});
}

TEST_CASE("probes keep to what the machine can do") {
  for (const Probe& probe : probes_for({.lines = false})) {
    CHECK(probe.name().find("LL128") == std::string::npos);
  }
  for (const Probe& probe : probes_for({.network = true})) {
    // Ranks of different nodes share no memory.
    CHECK(probe.program != "meetings");
    CHECK(probe.program != "hops_of_puts");
    CHECK(probe.program != "hops_of_packets");
  }
}

}  // namespace mscclc::calibrate
