// What a reduction as a tree gives, by the definition alone (ir/ops/trees.h): for tests of
// machines, which add up what comes one by one.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ir/ops/ops.h"

namespace mscclc {

/// The elements that sources of equally many elements give, divided by `divisor`. REQUIRES: there
/// is a source, and can_accumulate(dtype, accumulate).
std::vector<uint8_t> reduce_as_tree(Dtype dtype, Dtype accumulate, ReduceOp reduce,
                                    uint32_t divisor,
                                    std::span<const std::vector<uint8_t>> sources);

}  // namespace mscclc
