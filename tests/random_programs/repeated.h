// A plan several times over, for lemma S2: of copies that have nothing to do with each other, one
// stands for all.
#pragma once

#include <cstdint>
#include <optional>

#include "executor/cpu/dice.h"
#include "ir/program/program.h"

namespace mscclc::random_programs {

/// So many copies of a plan, each with blocks, chunks, channels and semaphores of its own; mostly
/// one of them is then changed in one place, or touches what another has. Nothing if the plan has
/// what is not looked at, or a contract that is not custom. REQUIRES: program.split.
std::optional<Program> repeated(const Program& program, uint32_t times, Dice& dice);

}  // namespace mscclc::random_programs
