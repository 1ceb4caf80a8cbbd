// What an exact reduction gives, by the definition alone: the element next to the sum. For tests of
// machines, which compute it otherwise (interpreter/exact.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/ops/ops.h"

namespace mscclc {

/// The elements that sources of equally many elements give, divided by `divisor` in `accumulate`:
/// exact sums and averages of floats; anything else is added up in turn. REQUIRES: there is a
/// source, and can_accumulate(dtype, accumulate).
std::vector<uint8_t> reduce_exactly(Dtype dtype, Dtype accumulate, ReduceOp reduce,
                                    uint32_t divisor,
                                    std::span<const std::vector<uint8_t>> sources);

/// Are they the same elements, if all NaNs are?
bool same_elements(Dtype dtype, std::span<const uint8_t> a, std::span<const uint8_t> b);

}  // namespace mscclc
