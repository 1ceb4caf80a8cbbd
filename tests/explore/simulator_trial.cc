#include "tests/explore/simulator_trial.h"

#include "executor/simulator/run.h"

namespace mscclc {

std::vector<Suspect> all_suspects(const Program& program) {
  std::vector<Suspect> out;
  for (uint32_t r = 0; r < program.ranks.size(); ++r) {
    for (uint32_t i = 0; i < program.ranks[r].ops.size(); ++i) {
      for (uint64_t call = 0; call < 2; ++call) out.push_back({{r, i, call}, std::nullopt});
    }
  }
  return out;
}

bool goes_wrong(const Program& program, bool in_place, uint32_t seeds, uint64_t first_seed) {
  Simulator runner(program);
  for (uint64_t seed = first_seed; seed < first_seed + seeds; ++seed) {
    Diagnostics diagnostics;
    const RunSpec spec{.bytes = 96 + 16 * (seed % 3),
                       .in_place = in_place,
                       .iterations = 4,
                       .schedule_seed = seed,
                       .adversary = Adversary{.strands = 2 + static_cast<uint32_t>(seed % 2)}};
    runner.restart();
    if (runner.run(spec, diagnostics).status != RunStatus::right) return true;
  }
  return false;
}

}  // namespace mscclc
