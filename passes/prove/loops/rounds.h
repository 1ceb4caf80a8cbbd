// Which numbers of rounds of its pipelines a proof runs, so that it holds for all numbers.
//
// Lemma R2 of docs/design/lemmas.md: a plan that is right with these is right with any.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/program/program.h"

namespace mscclc::proof {

/// The numbers of rounds to run, none of them zero: of each choice the rounds of each pipeline, by
/// loop of the program. One choice without a pipeline.
std::vector<std::vector<uint32_t>> round_choices(const Program& program);

}  // namespace mscclc::proof
