// Plans tried on the simulator under adversarial schedules, to compare with what judges say.
#pragma once

#include <cstdint>
#include <vector>

#include "executor/simulator/schedules/witness.h"
#include "ir/program/program.h"

namespace mscclc {

/// Every op of the first two calls: where a witness may hold something back.
std::vector<Suspect> all_suspects(const Program& program);

/// True if one of `seeds` random adversarial schedules of four calls goes wrong; `first_seed`
/// chooses which.
bool goes_wrong(const Program& program, bool in_place, uint32_t seeds, uint64_t first_seed = 1);

}  // namespace mscclc
