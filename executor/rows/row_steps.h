// Rows of an `apply` that stands in a packed program (executor/block_programs.h): what a machine of
// the host reads of the plan's functions, and how it goes over the rows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "executor/interpreter/steps.h"
#include "ir/rows/row_function.h"

namespace mscclc::device {

/// In RankContext.
struct RowFunctions {
  std::span<const rows::Function> functions;
  uint32_t columns = 0;
};

}  // namespace mscclc::device

namespace mscclc::rows {

/// A value of a step: its first row, and what lies between that and the next.
struct RowOperand {
  uint8_t* address = nullptr;
  bool is_value = false;  ///< a scalar whose bytes the address is
};

/// Computes rows [begin, end) of a step, counted from those that the operands begin at: results of
/// the function, then parameters, as it declares them. REQUIRES: as RowEvaluator.
void apply_rows(const device::RowFunctions& plan, uint32_t function, Dtype t,
                std::span<const RowOperand> operands, uint64_t begin, uint64_t end);

}  // namespace mscclc::rows
