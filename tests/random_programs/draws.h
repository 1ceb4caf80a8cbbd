// Sizes and schedules to try a program with, drawn without asking the prover.
#pragma once

#include <cstdint>
#include <string>

#include "executor/simulator/run.h"
#include "ir/program/program.h"
#include "tests/random_programs/families/sketch.h"

namespace mscclc::random_programs {

/// A message of so many bytes, some of them odd: few, and such that pipelines have numbers of
/// rounds that stand at edges: none, few, round the units, the credits, and many.
uint64_t draw_bytes(const Program& program, Dice& dice);
/// A run of 2 to 4 calls in a row: place, element type, size, schedule.
RunSpec draw_run(const Program& program, Dice& dice);

/// "f32, in place, schedule 7, 2 strands"
std::string describe_schedule(const RunSpec& spec);

}  // namespace mscclc::random_programs
