// The explorer against the simulator, over small plans and their mutants: what the explorer
// finds right never goes wrong under adversarial schedules, and what it refuses has a witness.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <map>

#include "executor/cpu/dice.h"
#include "ir/print/print.h"
#include "tests/explore/explore.h"
#include "tests/explore/mutants.h"
#include "tests/explore/simulator_trial.h"

namespace mscclc {
namespace {

using namespace testing;

constexpr uint32_t kSeeds = 24;

TEST_CASE("explorer and simulator agree on mutants") {
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
      CHECK(!goes_wrong(t.program, false, kSeeds));
    } else if (found.verdict != Verdict::too_large) {
      const WitnessSearch search{.seeds = 50, .suspects = 100};
      CHECK((goes_wrong(t.program, false, kSeeds) ||
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
