// How many rounds of its pipelines a proof runs.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/program.h"

namespace mscclc::proof {

/// What to try: the rounds of each pipeline, by loop of the program. Pipelines whose units are the
/// same part of their bytes have equally many rounds for every message; others have their own
/// number.
std::vector<std::vector<uint32_t>> round_choices(const Program& program);

}  // namespace mscclc::proof
