// Arguments for row functions: bytes of ordinary numbers, or any bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "executor/cpu/dice.h"
#include "ir/rows/row_function.h"

namespace mscclc::rows {

/// For each parameter the bytes of a row. `any`: any bits, so also NaN, infinity and subnormals;
/// otherwise numbers of about 1/16 to 8, of both signs.
std::vector<std::vector<uint8_t>> row_inputs(const Function& function, Dtype t, uint32_t columns,
                                             bool any, Dice& dice);

}  // namespace mscclc::rows
