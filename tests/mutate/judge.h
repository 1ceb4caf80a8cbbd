// Judges mutants. What the prover accepts is tried: by the explorer of all interleavings where it
// is small enough, and by adversarial schedules on the simulator, several calls in a row. A
// mutant that the prover accepts and that goes wrong there is a bug of the prover.
//
// Two stores of the same bits are a race to the explorer unless it is set otherwise: what is right
// only then is counted apart.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ir/program/program.h"

namespace mscclc {

enum class Judgement : uint8_t {
  malformed,  ///< the structure is broken: refused wherever plans are read
  refused,    ///< by the prover
  explored,   ///< accepted, and right in every interleaving
  same_bits,  ///< likewise, if stores of the bits that are there already are in no race
  scheduled,  ///< accepted, too large to explore, and right under all schedules tried
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
  std::string reason;  ///< of `same_bits` and what follows it: what the judges say
};

Judged judge(const Program& program, const Trial& trial);

}  // namespace mscclc
