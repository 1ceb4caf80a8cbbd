#include "tests/mutate/worlds.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "tests/library/library.h"

namespace mscclc {

std::vector<MutateWorld> mutate_worlds() {
  std::vector<MutateWorld> worlds;
  for (const LibraryProgram& entry : library()) {
    for (const Defines& defines : entry.worlds) {
      if (std::stoi(defines[0].second) > 4) continue;
      const CompiledWorld world(entry.name, defines);
      if (!world.errors().empty()) throw std::runtime_error(world.errors());
      worlds.push_back({fmt::format("{} {}", entry.name, text(defines)), world.program()});
      for (Loop& loop : worlds.back().program.loops) {
        loop.unit = std::max<uint64_t>(loop.unit / 4096, worlds.back().program.launch.align);
      }
    }
  }
  return worlds;
}

}  // namespace mscclc
