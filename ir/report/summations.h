// How ops add up their sources (Op::summation): which cannot, in words.
#pragma once

#include <optional>

#include "ir/ops/ops.h"
#include "ir/ops/summations.h"
#include "ir/support/result.h"

namespace mscclc {

/// Why an op that adds up so many sources cannot do so in this way, and what to write instead.
/// `reduce`: the reduction that the op fixes, if it does.
std::optional<Error> summation_fault(const OpInfo& op, Summation summation, ReduceOp reduce,
                                     size_t sources);

}  // namespace mscclc
