// Programs that add up the ranks' inputs in random orders.
#pragma once

#include <cstdint>
#include <string>

#include "executor/cpu/dice.h"

namespace mscclc::testing {

/// All ranks get the inputs of all, and add them up: alike, or one of them in its own way.
std::string random_sums(uint32_t ranks, Dice& dice);

}  // namespace mscclc::testing
