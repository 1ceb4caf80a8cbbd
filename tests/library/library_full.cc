// The whole product that library_test samples: programs x worlds x data types x in place or not x
// sizes x schedule seeds (the reduction goes round with the seed). Takes hours; run by hand:
//
//   bazel run //tests/library:library_full -- 0 2 &  bazel run //tests/library:library_full -- 1 2
//
// runs the two halves. Prints a line per program and ends with `N runs, N wrong`.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "tests/library/library.h"

namespace {

using namespace mscclc;

struct Totals {
  uint64_t runs = 0, wrong = 0;
};

void run_all_seeds(CompiledWorld& world, RunSpec spec, const std::string& where, Totals& totals) {
  const std::vector<ReduceOp> ops = world.reductions();
  for (uint64_t seed = 0; seed < kScheduleSeeds; ++seed) {
    spec.schedule_seed = seed;
    spec.op = ops[seed % ops.size()];
    const std::string fault = world.run(spec);
    ++totals.runs;
    if (fault.empty()) continue;
    ++totals.wrong;
    fmt::print("{}: {}", where, fault);
  }
}

void run_world(const LibraryProgram& entry, const Defines& defines, Totals& totals) {
  CompiledWorld world(entry.name, defines);
  const std::string where = fmt::format("{} {}", entry.name, text(defines));
  if (!world.errors().empty()) {
    fmt::print("{}: {}", where, world.errors());
    ++totals.wrong;
    return;
  }
  for (const Dtype dtype : world.dtypes()) {
    for (const bool in_place : world.in_place()) {
      for (const RunSize& size : run_sizes()) {
        run_all_seeds(world,
                      {.bytes = world.bytes(size, dtype),
                       .dtype = dtype,
                       .in_place = in_place,
                       .iterations = kCalls},
                      where, totals);
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (const char* folder = std::getenv("BUILD_WORKSPACE_DIRECTORY")) {
    if (chdir(folder) != 0) return 2;
  }
  const int part = argc > 2 ? std::atoi(argv[1]) : 0;
  const int parts = argc > 2 ? std::atoi(argv[2]) : 1;
  Totals totals;
  int index = 0;
  for (const LibraryProgram& entry : library()) {
    for (const Defines& defines : entry.worlds) {
      if (index++ % parts != part) continue;
      run_world(entry, defines, totals);
      fmt::print("{} {}: {} runs so far, {} wrong\n", entry.name, text(defines), totals.runs,
                 totals.wrong);
      std::fflush(stdout);
    }
  }
  fmt::print("{} runs, {} wrong\n", totals.runs, totals.wrong);
  return totals.wrong == 0 ? 0 : 1;
}
