// Where `avg` may divide.
#pragma once

#include <algorithm>

#include "ir/program/program.h"

namespace mscclc::proof {

/// May a call of this plan divide its sums: is there an op that would, and may a caller ask for it?
inline bool may_divide(const Program& program) {
  return program.contract.contributions() != 0 &&
         std::ranges::any_of(program.ranks, [](const Rank& rank) {
           return std::ranges::any_of(rank.ops, [](const Op& op) {
             return info(op.kind).has(kReduces) &&
                    (op.reduce == ReduceOp::call || op.reduce == ReduceOp::avg);
           });
         });
}

}  // namespace mscclc::proof
