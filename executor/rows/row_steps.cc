#include "executor/rows/row_steps.h"

#include "executor/rows/evaluate.h"

namespace mscclc::rows {
namespace {

/// Bytes from one row of a value to the next; 0: all rows share it.
uint64_t apart(const Stored& stored, Dtype t, uint32_t columns) {
  return is_per_row(stored.kind) ? bytes_of_row(stored, t, columns) : 0;
}

}  // namespace

void apply_rows(const device::RowFunctions& plan, uint32_t function, Dtype t,
                std::span<const RowOperand> operands, uint64_t begin, uint64_t end) {
  const Function& of = plan.functions[function];
  const size_t results = of.outputs.size();
  std::vector<uint8_t*> at;
  std::vector<uint64_t> step;
  for (size_t k = 0; k < operands.size(); ++k) {
    const Stored& stored = k < results ? of.outputs[k] : of.params[k - results];
    step.push_back(apart(stored, t, plan.columns));
    // Bytes of a value lie first in memory, as those of a number do here.
    uint8_t* const first =
        operands[k].is_value
            ? reinterpret_cast<uint8_t*>(const_cast<uint8_t**>(&operands[k].address))
            : operands[k].address;
    at.push_back(first + begin * step.back());
  }
  RowEvaluator evaluator(of, t, plan.columns);
  for (uint64_t row = begin; row < end; ++row) {
    evaluator.run(at.data() + results, at.data());
    for (size_t k = 0; k < at.size(); ++k) at[k] += step[k];
  }
}

}  // namespace mscclc::rows
