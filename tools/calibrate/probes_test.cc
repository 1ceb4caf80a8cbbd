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
  check_all({.max_blocks = 132});
  check_all({.network = true});
}

TEST_CASE("a large GPU's probes have all formats, blocks apart, and many blocks") {
  std::set<std::string> names;
  for (const Probe& probe : probes_for({.max_blocks = 132})) names.insert(probe.name());
  for (const PacketFormatInfo& row : packet_formats()) {
    const std::string format(row.name);
    CHECK(names.contains("hops_of_packets K=9 F=" + format));
    CHECK(names.contains("hops_of_packets K=1 F=" + format + " B=16"));
  }
  CHECK(names.contains("local_copies B=120"));
  CHECK(names.contains("hops_of_puts K=1 B=120"));
  CHECK(names.contains("allreduce_2shot_packets F=LL128 B=96 T=256"));
  CHECK(names.contains("allreduce_2shot_packets F=LL128 B=60 T=512 apart=true"));
  CHECK(names.contains("allreduce_2shot_packets F=sentinel B=60 T=512 apart=true"));
}

TEST_CASE("blocks apart count twice") {
  const auto has = [](const std::string& name, uint32_t max_blocks) {
    for (const Probe& probe : probes_for({.max_blocks = max_blocks})) {
      if (probe.name() == name) return true;
    }
    return false;
  };
  CHECK(has("allreduce_2shot_packets F=LL128 B=60 T=512 apart=true", 121));
  CHECK_FALSE(has("allreduce_2shot_packets F=LL128 B=60 T=512 apart=true", 120));
  CHECK_FALSE(has("local_copies B=120", 120));
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
