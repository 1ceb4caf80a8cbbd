// A call as the steps of a plan do it: how much, of which type, added up how.
#pragma once

#include <cstdint>

#include "ir/ops/dtypes.h"

namespace mscclc {

/// What a caller asks for, once checked and completed (lower.h, check_call()).
struct Call {
  uint64_t part_bytes = 0;  ///< see Chunking
  Dtype dtype = Dtype::f32;
  Dtype accumulate = Dtype::f32;
  ReduceOp reduce = ReduceOp::sum;
  uint32_t contributions = 1;  ///< what avg divides by
};

}  // namespace mscclc
