// A short program: a few steps on packets that all blocks of a launch have in common, except
// where their operands begin, and that later blocks may have less to do. One block more may signal
// peers and wait for their signals, and does nothing else: so the ranks of a broadcast, say, signal
// its root that they have taken what it sent. It says what the steps of the blocks say (steps.h),
// once for all of them, so that it travels in the parameters of a launch however many blocks there
// are, and a block reads it where it lies (short_program.h makes it).
#pragma once

#include <cstdint>

#include "executor/interpreter/steps.h"

namespace mscclc::device {

inline constexpr uint32_t kShortSteps = 4;     ///< of a short program, at most
inline constexpr uint32_t kShortOperands = 4;  ///< of a step, on each side
inline constexpr uint32_t kShortTargets = 8;   ///< of the block that signals and waits

struct ShortOperand {
  uint8_t* address;  ///< of the run, for block 0, in copy 0
  uint64_t apart;    ///< bytes from one block's to the next one's; may wrap around ...
  uint32_t stride;   ///< from copy 0 to copy 1, in lines of kCopyLine bytes; 0: there is one copy
  uint32_t shrink;   ///< ... and so much less after block ShortProgram::turn
  bool operator==(const ShortOperand&) const = default;
};

/// What a step says besides where: read in one go.
struct alignas(16) ShortHead {
  uint8_t srcs, dsts;     ///< how many
  uint8_t from_packets;   ///< bit j: source j holds packets; else it is plain data
  uint8_t to_packets;     ///< the same of destinations
  uint8_t pairs, adds;    ///< 0 or 1
  uint8_t averages;       ///< 1: the call averages, and the sum is complete: it is to be divided
  uint8_t frees_next;     ///< kFreesNext
  uint32_t source;        ///< the op's index among the rank's ops, for block 0 ...
  uint32_t source_apart;  ///< ... and from one block to the next
  bool operator==(const ShortHead&) const = default;
};

/// What a block has to do of a step.
struct ShortRange {
  uint32_t begin, end;  ///< units of the run
  uint32_t length;      ///< bytes of data from the run's beginning on
  uint32_t reserved;
  bool operator==(const ShortRange&) const = default;
};

/// A step of kind move_packets or reduce_packets. Each source goes to the destination of its index
/// (`pairs`), or the one source, or the sum of all, to all destinations. What blocks read first
/// stands together: constants of a launch are fetched line by line.
struct ShortStep {
  ShortHead head;
  ShortRange range;                           ///< of blocks before ShortProgram::turn ...
  ShortOperand operands[2 * kShortOperands];  ///< sources; destinations from short_side() on
  ShortRange late;                            ///< ... and from there on
  bool operator==(const ShortStep&) const = default;
};

/// A signal that a block gives, or one that it waits for. All are independent of each other.
struct ShortTarget {
  uint64_t* address;       ///< the count (StepTarget::address)
  uint32_t index;          ///< channel of the rank
  uint32_t source;         ///< the op's index among the rank's ops
  uint16_t slot;           ///< of a wait: counted_slot()
  uint8_t waits, relaxed;  ///< 0 or 1
  uint32_t reserved;
  bool operator==(const ShortTarget&) const = default;
};

struct ShortProgram {
  uint32_t steps = 0;
  PacketFormat format = PacketFormat::none;
  uint32_t operands = 0;  ///< the most that a step has on one side
  uint32_t blocks = 0;    ///< how many run the steps; the one after them has the targets
  uint32_t turn = 0;      ///< the first of them that has less to do, or how many they are
  uint32_t puts = 0;      ///< 1: the first step reads no packets, else 0
  uint32_t targets = 0;   ///< 0: there is no such block
  ShortStep step[kShortSteps];
  ShortTarget target[kShortTargets];
};

/// Where destinations begin among the operands of a step, in programs with so many on one side.
constexpr uint32_t short_side(uint32_t operands) { return operands <= 2 ? 2 : kShortOperands; }

}  // namespace mscclc::device
