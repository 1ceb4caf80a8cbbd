// A short program: a few steps on packets that all blocks of a launch have alike, but for where
// their operands begin, and that later blocks may have less to do. It says what the steps of the
// blocks say (steps.h), once for all of them, so that it travels in the parameters of a launch
// however many blocks there are, and a block reads it where it lies (short_program.h makes it).
#pragma once

#include <cstdint>

#include "executor/interpreter/steps.h"

namespace mscclc::device {

inline constexpr uint32_t kShortSteps = 4;     ///< of a short program, at most
inline constexpr uint32_t kShortOperands = 4;  ///< of a step, on each side

struct ShortOperand {
  uint8_t* address;  ///< of the run, for block 0, in copy 0
  uint64_t apart;    ///< bytes from one block's to the next one's; may wrap around ...
  uint32_t stride;   ///< from copy 0 to copy 1, in lines of kCopyLine bytes; 0: there is one copy
  uint16_t shrink;   ///< ... and so much less behind block ShortProgram::turn
  uint16_t packets;  ///< 1: holds packets, 0: plain data
  bool operator==(const ShortOperand&) const = default;
};

/// A step of kind move_packets or reduce_packets. Each source goes to the destination of its index
/// (`pairs`), or the one source, or the sum of all, to all destinations.
struct ShortStep {
  uint32_t srcs, dsts;  ///< how many
  uint32_t begin, end;  ///< units of the run that a block moves
  uint32_t length;      ///< bytes of data from the run's beginning on
  uint32_t late_end;    ///< the end and the length from block `turn` on
  uint32_t late_length;
  uint32_t source;        ///< the op's index among the rank's ops, for block 0 ...
  uint32_t source_apart;  ///< ... and from one block to the next
  uint8_t pairs, adds;    ///< 0 or 1
  uint8_t averages;       ///< 1: the sum is complete, so that an average divides it
  uint8_t frees_next;     ///< kFreesNext
  ShortOperand from[kShortOperands], to[kShortOperands];
  bool operator==(const ShortStep&) const = default;
};

struct ShortProgram {
  uint32_t steps = 0;
  PacketFormat format = PacketFormat::none;
  uint32_t operands = 0;  ///< the most that a step has on one side
  uint32_t turn = 0;      ///< the first block that has less to do, or how many blocks there are
  uint32_t puts = 0;      ///< 1: the first step reads no packets, else 0
  ShortStep step[kShortSteps];
};

}  // namespace mscclc::device
