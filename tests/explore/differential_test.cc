// The explorer against the host machine, over small plans and their mutants: what the explorer
// finds right never goes wrong under adversarial schedules, and what it refuses has a witness.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <map>

#include "executor/host/scheduler.h"
#include "executor/host/witness.h"
#include "ir/print.h"
#include "tests/explore/explore.h"
#include "tests/explore/mutants.h"

namespace mscclc {
namespace {

using namespace testing;

constexpr uint32_t kSeeds = 24;

/// Every op of the first two calls.
std::vector<Suspect> all_suspects(const Program& program) {
  std::vector<Suspect> out;
  for (uint32_t r = 0; r < program.ranks.size(); ++r) {
    for (uint32_t i = 0; i < program.ranks[r].ops.size(); ++i) {
      for (uint64_t call = 0; call < 2; ++call) out.push_back({{r, i, call}, std::nullopt});
    }
  }
  return out;
}

/// True if a random adversarial schedule goes wrong.
bool goes_wrong(const Program& program) {
  HostRunner runner(program);
  for (uint32_t seed = 1; seed <= kSeeds; ++seed) {
    Diagnostics diagnostics;
    const RunSpec spec{.bytes = 96 + 16 * (seed % 3),
                       .in_place = false,
                       .iterations = 4,
                       .schedule_seed = seed,
                       .adversary = Adversary{.lanes = 2 + seed % 2}};
    runner.restart();
    const RunStatus status = runner.run(spec, diagnostics).status;
    if (status != RunStatus::right) return true;
  }
  return false;
}

TEST_CASE("explorer and host machine agree on mutants") {
  Dice dice(20);
  std::map<Verdict, int> verdicts;
  const char* more = std::getenv("MSCCLC_MUTANTS");
  const int mutants = more == nullptr ? 150 : std::atoi(more);
  for (int i = 0; i < mutants; ++i) {
    const TestProgram t = mutant(dice);
    const Exploration found = explore(t.program, {.calls = 3});
    ++verdicts[found.verdict];
    INFO(name(found.verdict) << ": " << found.reason << '\n' << print_ir(t.program));
    if (found.verdict == Verdict::right) {
      CHECK(!goes_wrong(t.program));
    } else if (found.verdict != Verdict::too_large) {
      const WitnessSearch search{.seeds = 50, .suspects = 100};
      CHECK((goes_wrong(t.program) ||
             find_witness(t.program, all_suspects(t.program), search).has_value()));
    }
  }
  for (const Verdict v : {Verdict::right, Verdict::wrong_data, Verdict::deadlock, Verdict::race}) {
    INFO(name(v));
    CHECK(verdicts[v] > 5);
  }
}

}  // namespace
}  // namespace mscclc
