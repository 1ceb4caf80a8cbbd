// The reductions of machines on CPUs: one function for each data type, accumulation type and
// reduction, chosen once per op.
#pragma once

#include <cstdint>

#include "ir/ops/ops.h"

namespace mscclc {

/// How rows of elements are added up. Sums hold the accumulation type.
struct RowArith {
  void (*start)(void* sums, const uint8_t* row, uint32_t n) = nullptr;
  void (*add)(void* sums, const uint8_t* row, uint32_t n) = nullptr;
  void (*merge)(void* sums, const void* more, uint32_t n) = nullptr;
  void (*finish)(uint8_t* row, const void* sums, uint32_t n) = nullptr;
  void (*divide)(void* sums, uint32_t n, uint32_t by) = nullptr;
};

/// How rows of floats are added up exactly (interpreter/exact.h), of a tile at most.
struct ExactArith {
  void (*start)(void* sums, const uint8_t* row, uint32_t n) = nullptr;
  void (*add)(void* sums, const uint8_t* row, uint32_t n) = nullptr;
  /// `divisor`: 1 if it is no average.
  void (*finish)(uint8_t* row, void* sums, uint32_t n, uint32_t divisor) = nullptr;
  uint32_t bytes = 0;  ///< of sums
};

/// REQUIRES: `dtype` is a float, and can_accumulate(dtype, accumulate).
ExactArith exact_arith(Dtype dtype, Dtype accumulate);

/// The functions for a reduction (avg: those of sum). REQUIRES: can_accumulate(dtype, accumulate).
RowArith row_arith(Dtype dtype, Dtype accumulate, ReduceOp reduce);

}  // namespace mscclc
