// The recorded run: random small plans, right and wrong, judged by the prover, and what it says
// tried on the host machine and compared with the explorer. What it accepts must survive
// adversarial schedules of four calls in both placements, what it refuses must have a witness.
// Prints what disagrees, and counts.
//
//   bazel run -c opt //tests/explore:differential_full -- [SECONDS=60] [SEED=1] [SCHEDULES=200]
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "executor/host/scheduler.h"
#include "ir/print.h"
#include "passes/prove/prove.h"
#include "tests/explore/explore.h"
#include "tests/explore/host_trial.h"
#include "tests/explore/mutants.h"

namespace {

using namespace mscclc;

struct Counts {
  uint64_t plans = 0, accepted = 0, refused = 0, undecided = 0, explored = 0, schedules = 0;
  uint64_t accepted_wrong = 0, without_witness = 0, explorer_disagrees = 0, symmetry_disagrees = 0;
};

void disagree(uint64_t& count, const char* what, const Program& program) {
  ++count;
  fmt::print("{}\n{}\n", what, print_ir(program));
  std::fflush(stdout);
}

bool may_be_in_place(const Program& program) {
  return program.contract.can_alias() && program.contract.in_place != InPlace::no;
}

void compare_with_explorer(const Program& program, bool proved, Counts& counts) {
  Exploration found = explore(program, {.calls = 3});
  if (found.verdict == Verdict::right && may_be_in_place(program)) {
    found = explore(program, {.calls = 3, .in_place = true});
  }
  if (found.verdict == Verdict::too_large || found.verdict == Verdict::unsupported) return;
  ++counts.explored;
  if (proved == (found.verdict == Verdict::right)) return;
  disagree(counts.explorer_disagrees,
           proved ? "accepted, and the explorer refuses" : "refused, and the explorer accepts",
           program);
}

void try_one(const Program& program, uint32_t schedules, Counts& counts) {
  ++counts.plans;
  Diagnostics diagnostics;
  const bool proved = prove(program, diagnostics).proved;
  if (!proved && diagnostics.all()[0].code == "undecided") {
    ++counts.undecided;
    return;
  }
  Diagnostics ignored;
  if (prove(program, ignored, {.symmetry_from = 0}).proved != proved) {
    disagree(counts.symmetry_disagrees, "judged otherwise by ranks that stand for all", program);
  }
  compare_with_explorer(program, proved, counts);
  if (proved) {
    ++counts.accepted;
    const uint64_t first_seed = 1 + counts.schedules;
    for (const bool in_place : {false, true}) {
      if (in_place && !may_be_in_place(program)) continue;
      counts.schedules += schedules;
      if (!goes_wrong(program, in_place, schedules, first_seed)) continue;
      disagree(counts.accepted_wrong, "accepted, and goes wrong", program);
    }
    return;
  }
  ++counts.refused;
  const WitnessSearch search{.seeds = 50, .suspects = 100};
  if (goes_wrong(program, false, 24)) return;
  if (find_witness(program, all_suspects(program), search)) return;
  disagree(counts.without_witness, "refused, and no witness found", program);
}

}  // namespace

int main(int argc, char** argv) {
  const auto number = [&](int i, uint32_t otherwise) {
    return argc > i ? static_cast<uint32_t>(std::strtoul(argv[i], nullptr, 10)) : otherwise;
  };
  const std::chrono::seconds limit(number(1, 60));
  Dice dice(number(2, 1));
  const uint32_t schedules = number(3, 200);
  Counts counts;
  const auto begin = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - begin < limit) {
    try_one(mutant(dice).program, schedules, counts);
  }
  fmt::print("{} plans: {} accepted, {} refused, {} undecided; {} explored; {} schedules\n",
             counts.plans, counts.accepted, counts.refused, counts.undecided, counts.explored,
             counts.schedules);
  fmt::print(
      "accepted and wrong: {}, refused without witness: {}, explorer disagrees: {}, "
      "symmetry disagrees: {}\n",
      counts.accepted_wrong, counts.without_witness, counts.explorer_disagrees,
      counts.symmetry_disagrees);
  return counts.accepted_wrong + counts.without_witness + counts.explorer_disagrees +
                     counts.symmetry_disagrees ==
                 0
             ? 0
             : 1;
}
