// The recorded run: mutants of every library program at 2 to 4 ranks, judged. Prints what became of
// each kind of change, and every mutant that is accepted.
//
//   bazel run -c opt //tests/mutate:mutate_full -- [MUTANTS=10000] [SEED=1] [SEEDS=24]
//   [STATES=30000]
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "tests/mutate/judge.h"
#include "tests/mutate/mutate.h"
#include "tests/mutate/worlds.h"

namespace {

using namespace mscclc;

using Row = std::array<uint64_t, kJudgements>;

void print_row(std::string_view name, const Row& row) {
  uint64_t all = 0;
  for (const uint64_t n : row) all += n;
  fmt::print("| {:13} | {:7} |", name, all);
  for (const uint64_t n : row) fmt::print(" {:9} |", n);
  fmt::print("\n");
}

}  // namespace

int main(int argc, char** argv) {
  if (const char* folder = std::getenv("BUILD_WORKSPACE_DIRECTORY")) {
    if (chdir(folder) != 0) return 2;
  }
  const auto number = [&](int i, uint64_t otherwise) {
    return argc > i ? std::strtoull(argv[i], nullptr, 10) : otherwise;
  };
  const uint64_t mutants = number(1, 10000), seed = number(2, 1);
  const Trial trial{.seeds = static_cast<uint32_t>(number(3, Trial().seeds)),
                    .most_states = number(4, Trial().most_states)};
  const std::vector<MutateWorld> worlds = mutate_worlds();
  std::array<Row, kMutations> counts = {};
  for (size_t w = 0; w < worlds.size(); ++w) {
    Mutator mutator(worlds[w].program, seed * 1000 + w);
    for (uint64_t i = w; i < mutants; i += worlds.size()) {
      const std::optional<Mutant> mutant = mutator.next();
      if (!mutant) break;
      const Judged judged = judge(mutant->program, trial);
      ++counts[static_cast<size_t>(mutant->mutation)][static_cast<size_t>(judged.judgement)];
      if (judged.judgement <= Judgement::refused) continue;
      fmt::print("{}: {}: {}: {}\n", name(judged.judgement), worlds[w].name, mutant->what,
                 judged.reason);
      std::fflush(stdout);
    }
  }
  fmt::print("| {:13} | {:>7} |", "", "mutants");
  for (size_t j = 0; j < kJudgements; ++j) {
    fmt::print(" {:>9} |", name(static_cast<Judgement>(j)));
  }
  fmt::print("\n");
  Row total = {};
  for (size_t m = 0; m < kMutations; ++m) {
    print_row(name(static_cast<Mutation>(m)), counts[m]);
    for (size_t j = 0; j < kJudgements; ++j) total[j] += counts[m][j];
  }
  print_row("all", total);
  return total[static_cast<size_t>(Judgement::wrong)] == 0 ? 0 : 1;
}
