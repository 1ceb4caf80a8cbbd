// What the flags of a program cover, and how they are numbered.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "ir/program/program.h"

namespace mscclc {

/// Chunks of input or output that a flag is for.
struct FlagRegion {
  uint32_t buffer = kInput, first = 0, count = 0;
};
/// REQUIRES: no flags_fault(); the rank, array and flag are there.
FlagRegion flag_region(const Program& program, uint32_t rank, uint32_t array, uint32_t flag);

/// Flags of all arrays are numbered one array after the other: that of an operand.
uint32_t flag_number(const Program& program, uint32_t array, uint32_t flag);
/// How many there are.
uint32_t flag_total(const Program& program);
/// "ready[3]"
std::string flag_text(const Program& program, uint32_t array, uint32_t flag);

/// May the other side wait for flag `of` of array `output`, which the plan raises, before it raises
/// flag `c` of `array`? REQUIRES: `array` is of the input, `output` of the output.
bool may_wait_for(const Program& program, uint32_t array, uint32_t c, uint32_t output, uint32_t of);

struct FlagsFault {
  std::string text;
  uint32_t array = kNone;  ///< whose it is, if it is of one
};
/// What is wrong with the declarations, or nothing. REQUIRES: the contract is right.
std::optional<FlagsFault> flags_fault(const Program& program);
/// What is wrong with an op of these flags, or nothing; `loop`: its pipeline. REQUIRES: no
/// flags_fault(); the flags are there.
std::optional<std::string> flag_op_fault(const Program& program, OpKind kind, uint32_t loop,
                                         std::span<const Operand> flags);

/// When flag `c` of an array has its turn at a rank, from 0, as `tiles` says.
uint32_t tile_position(const Program& program, const FlagArray& array, uint32_t rank, uint32_t c);

/// Arrays and flags of a program: hostile input costs little.
inline constexpr uint32_t kMaxFlagArrays = 16, kMaxFlags = 4096, kMaxRaises = 1u << 20;

}  // namespace mscclc
