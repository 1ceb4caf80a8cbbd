// Judges mutants. What the prover accepts is tried: by the explorer of all interleavings where it
// is small enough, and by adversarial schedules on the host machine, several calls in a row. A
// mutant that the prover accepts and that goes wrong there is a bug of the prover.
//
// The explorer is stricter than the prover: two stores of the same bits are a race to it. Its races
// are put down as disputed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ir/program.h"

namespace mscclc {

enum class Judgement : uint8_t {
  malformed,  ///< the structure is broken: refused wherever plans are read
  refused,    ///< by the prover
  explored,   ///< accepted, and right in every interleaving
  scheduled,  ///< accepted, too large to explore, and right under all schedules tried
  disputed,   ///< accepted, right under all schedules tried, but the explorer sees a race
  wrong,      ///< accepted, and wrong
};
inline constexpr size_t kJudgements = 6;
std::string_view name(Judgement judgement);

struct Trial {
  uint32_t seeds = 24;           ///< schedules for each placement and size
  uint64_t most_states = 30000;  ///< for the explorer
};

struct Judged {
  Judgement judgement;
  std::string reason;  ///< `wrong`, `disputed`: what the explorer or the host machine says
};

Judged judge(const Program& program, const Trial& trial);

}  // namespace mscclc
