#include "tests/random_programs/engine_runs.h"

#include <fmt/format.h>

#include "tests/engines/engine_trial.h"
#include "tests/random_programs/draws.h"

namespace mscclc::random_programs {
namespace {

/// Row functions are run by compiled kernels alone; and what runs the engines gives no channel
/// anything before the first call.
bool engines_run(const Program& program) {
  if (!program.functions.empty()) return false;
  for (const Rank& rank : program.ranks) {
    for (const Channel& channel : rank.channels) {
      if (channel.credits > 0) return false;
    }
  }
  return true;
}

}  // namespace

std::optional<std::string> fault_on_engines(const Program& program, uint64_t number,
                                            uint32_t runs) {
  if (!engines_run(program)) return std::nullopt;
  EngineTrial trial(program);
  Dice dice(number ^ 0xa0761d6478bd642f);
  for (uint32_t i = 0; i < runs; ++i) {
    const RunSpec run = draw_run(program, dice);
    const EngineSpec spec{.bytes = run.bytes,
                          .dtype = Dtype::f32,
                          .in_place = run.in_place.value_or(false),
                          .engine = kEngines[dice.below(3)],
                          .seed = one_in(dice, 4) ? 0 : dice.next(),
                          .calls = 3 + dice.below(3)};
    if (const auto fault = trial.fault(spec))
      return fmt::format("engines, {}: {}", text(spec), *fault);
  }
  return std::nullopt;
}

}  // namespace mscclc::random_programs
