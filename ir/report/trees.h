// Sums that are trees (Op::tree): which there are not, in words.
#pragma once

#include <string>

#include "ir/ops/ops.h"

namespace mscclc {

/// Why an op that adds up so many sources cannot be a tree, and what to write instead; "" if it
/// can.
std::string tree_fault(const OpInfo& op, size_t sources);

}  // namespace mscclc
