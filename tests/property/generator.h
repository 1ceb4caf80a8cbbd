// Random valid programs, as text, that say themselves what they must give.
//
// A generated program is a global sequence of steps (local copies and sums, puts with signals,
// packets, groups, pipelines, ops without a thread block), appended to the ranks' bodies in that
// order. In one of three no op names a thread block. The generator follows the values, so the
// `ensure` lines are exactly what a right compiler and machine must produce, for every schedule and
// message size.
#pragma once

#include <cstdint>
#include <string>

namespace mscclc {

/// A program made from `seed`: 2 to 4 ranks, up to 3 blocks, a few dozen steps.
std::string random_program(uint64_t seed);

}  // namespace mscclc
