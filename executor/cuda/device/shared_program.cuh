// The program of a block where it lies in shared memory: header, steps, operands, targets.
#pragma once

#include <cstdint>

#include "executor/cuda/device/access.cuh"
#include "executor/interpreter/steps.h"

namespace mscclc::cuda {

using device::Step;
using device::StepHeader;
using device::StepOperand;

/// The block's program, in shared memory. Lines of 16 bytes: the header, steps, operands, targets.
__device__ inline uint4* shared_lines() { return dynamic_shared(); }
__device__ inline const StepHeader& shared_header() {
  return *reinterpret_cast<const StepHeader*>(shared_lines());
}
__device__ inline const Step& shared_step(uint32_t i) {
  return reinterpret_cast<const Step*>(shared_lines() + sizeof(StepHeader) / 16)[i];
}
/// The same, read at once: what a step says is needed one after the other, and each access takes
/// some thirty cycles.
__device__ inline Step load_step(uint32_t i) {
  const uint4* lines = shared_lines() + sizeof(StepHeader) / 16 + i * (sizeof(Step) / 16);
  const uint4 words[] = {lines[0], lines[1], lines[2], lines[3]};
  static_assert(sizeof words == sizeof(Step));
  Step step;
  memcpy(&step, words, sizeof step);
  return step;
}
/// An operand in call `call`. REQUIRES: a power of two copies.
__device__ inline StepOperand shared_operand(uint32_t line, uint32_t call) {
  StepOperand operand;
  const uint4 words = shared_lines()[line];
  memcpy(&operand, &words, sizeof operand);
  const uint32_t copy = call & (operand.copies - 1u);
  operand.address += uint64_t{copy * operand.stride} * device::kCopyLine;
  return operand;
}

}  // namespace mscclc::cuda
