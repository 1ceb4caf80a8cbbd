// Steps that a block does again and again, each time to other chunks or peers: where a picture
// would be higher than a screen, the first time stands for all.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/draw/steps.h"

namespace mscclc::draw {

struct Repeat {
  uint32_t first = 0, length = 0;  ///< the steps of the first time, in their block
  uint32_t times = 1;
};

/// All steps of a block, in order; those that are done once are repeats with `times` 1.
std::vector<Repeat> repeats_of(const Program& program, const Steps& steps, const Block& block);

}  // namespace mscclc::draw
