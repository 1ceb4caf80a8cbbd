#include "tests/mutate/worlds.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "compiler/compile.h"
#include "tests/library/library.h"
#include "tests/random_programs/families/families.h"

namespace mscclc {

namespace {

/// With two thread blocks, or instances, where a program leaves their number open: one more shows
/// nothing new.
Defines small(std::string_view program, Defines defines) {
  const std::string text = library_text(program);
  for (const auto* blocks : {"B = 4", "B = 8"}) {
    if (text.find(blocks) != std::string::npos) defines.push_back({"B", "2"});
  }
  if (text.find("T = 4") != std::string::npos) defines.push_back({"T", "2"});
  for (const auto* instances : {"I = 4", "I = 8"}) {
    if (text.find(instances) != std::string::npos) defines.push_back({"I", "2"});
  }
  return defines;
}

/// Short rounds, so that a small message has many. The slots of a pipeline are as long as its unit.
void shrink_units(Program& program) {
  const auto shrink = [&](uint64_t& unit) {
    unit = std::max<uint64_t>(unit / 4096, program.launch.align);
  };
  for (Loop& loop : program.loops) shrink(loop.unit);
  for (Rank& rank : program.ranks) {
    for (Buffer& buffer : rank.buffers) {
      if (buffer.units != 0) shrink(buffer.unit);
    }
  }
}

constexpr uint64_t kRandomWorlds = 8;

MutateWorld random_world(uint64_t seed) {
  using namespace random_programs;
  Dice dice(seed);
  Sketch sketch = make_flows(dice);
  while (sketch.ir_only) sketch = make_flows(dice);
  Sources sources;
  Diagnostics diagnostics;
  const FileId file = sources.add("random.mscl", text(sketch, Form::ordered));
  auto program = compile(sources, file, {}, {}, diagnostics);
  if (!program) throw std::runtime_error(render_text(diagnostics, sources));
  return {fmt::format("random pipelines {}", seed), *std::move(program)};
}

}  // namespace

std::vector<MutateWorld> mutate_worlds() {
  std::vector<MutateWorld> worlds;
  for (const LibraryProgram& entry : library()) {
    for (const Defines& defines : entry.worlds) {
      if (std::stoi(defines[0].second) > 4) continue;
      const CompiledWorld world(entry.name, small(entry.name, defines));
      if (!world.errors().empty()) throw std::runtime_error(world.errors());
      worlds.push_back({fmt::format("{} {}", entry.name, text(defines)), world.program()});
      shrink_units(worlds.back().program);
    }
  }
  for (uint64_t seed = 1; seed <= kRandomWorlds; ++seed) worlds.push_back(random_world(seed));
  return worlds;
}

}  // namespace mscclc
