// What a specialised kernel is told beside its launch (executor/special/shape.h): the sizes and
// addresses of the steps whose kinds, formats and operands stand in its code. Lines of 16 bytes, in
// the kernel's second parameter; host and device code.
#pragma once

#include <cstdint>

#include "executor/interpreter/steps.h"

namespace mscclc::device {

/// How much of a step's run a block moves: bytes, or units of packets, from the run's beginning.
struct SpecialExtent {
  uint32_t begin, end;  ///< equal: the block has nothing to do in this call
  uint32_t length;      ///< bytes of data from the run's beginning on
  uint32_t source;      ///< the op's index among the rank's ops in the IR, and kSpecialFrees
};
static_assert(sizeof(SpecialExtent) == 16);

/// In SpecialExtent::source: behind the step the next launch may begin (kFreesNext).
inline constexpr uint32_t kSpecialFrees = 0x80000000u;

/// Where a step finds an operand: a line with its StepOperand, and what the code knows of it. Bits.
enum SpecialPlace : uint32_t {
  kPlaceShared = 1,   ///< the line is the same for all blocks of this code
  kPlacePackets = 2,  ///< in a packet buffer
  kPlaceDoubled = 4,  ///< in a buffer of two copies
  kPlaceLine = 8,     ///< times the line's number
};

/// A place in line `line` of all blocks, or of a block's own; `more`: kPlacePackets, kPlaceDoubled.
constexpr uint32_t shared_place(uint32_t line, uint32_t more = 0) {
  return line * kPlaceLine | kPlaceShared | more;
}
constexpr uint32_t own_place(uint32_t line, uint32_t more = 0) { return line * kPlaceLine | more; }

/// Lines in a kernel's parameters, at most: CUDA takes 32764 bytes, of which the first parameter, a
/// LaunchPlan, has some.
inline constexpr uint32_t kMostSpecialLines = 2000;

}  // namespace mscclc::device
