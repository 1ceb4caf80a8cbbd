// What a compiled kernel gets beside its launch (executor/compiled/shape.h): the sizes and
// addresses of the steps whose kinds, formats and operands stand in its code. Lines of 16 bytes, in
// the kernel's second parameter or, where they are more than it takes, in memory that it points to;
// host and device code.
#pragma once

#include <cstdint>

#include "executor/interpreter/steps.h"

namespace mscclc::device {

/// How much of a step's run a block moves: bytes, or units of packets, from the run's beginning.
struct CompiledExtent {
  uint32_t begin, end;  ///< equal: the block has nothing to do in this call
  uint32_t length;      ///< bytes of data from the run's beginning on
  uint32_t source;      ///< the op's index among the rank's ops in the IR, and kCompiledFrees
};
static_assert(sizeof(CompiledExtent) == 16);

/// A pipeline, in place of the extent: one line.
struct CompiledLoop {
  uint64_t unit;    ///< bytes of a round
  uint64_t rounds;  ///< 0: the body has nothing to do in this call
};
static_assert(sizeof(CompiledLoop) == 16);

/// What a block moves of a step in the rounds of a pipeline: the same for all of them, three lines.
/// All zeros: nothing.
struct CompiledRounds {
  uint64_t begin, end;           ///< virtual range that lies in the run
  uint64_t run_begin, move_end;  ///< of the run, and of all of the move
  uint32_t part, parts;          ///< this block's share of a group's op
  uint32_t reserved;
  uint32_t source;  ///< as CompiledExtent's
};
static_assert(sizeof(CompiledRounds) == 48);

/// In CompiledExtent::source: after the step the next launch may begin (kFreesNext).
inline constexpr uint32_t kCompiledFrees = 0x80000000u;

/// Where a step finds an operand: a line with its StepOperand, and what the code knows of it. Bits.
enum CompiledPlace : uint32_t {
  kPlaceShared = 1,   ///< the line is the same for all blocks of this code
  kPlacePackets = 2,  ///< in a packet buffer
  kPlaceDoubled = 4,  ///< in a buffer of two copies
  kPlaceCopied = 8,   ///< in a buffer of more copies than two: as many as its line says
  kPlaceExtra = 16,   ///< its StepExtra is in the next line
  kPlaceHanded = 32,  ///< a value that a sum hands over (kHanded), which has no line
  kPlaceLine = 64,    ///< times the line's number
};

/// A place in line `line` of all blocks, or of a block's own; `more`: the other bits.
constexpr uint32_t shared_place(uint32_t line, uint32_t more = 0) {
  return line * kPlaceLine | kPlaceShared | more;
}
constexpr uint32_t own_place(uint32_t line, uint32_t more = 0) { return line * kPlaceLine | more; }

/// How a result or a parameter of a row function lies in memory.
struct RowForm {
  bool wide;       ///< it has a value for each column
  uint32_t bytes;  ///< of a value
  uint32_t apart;  ///< bytes from one row's values to the next; 0: all rows share them
};

/// Neighbouring columns that each thread has of a row, a power of two: as few as fill 16 bytes, or
/// as the block's threads need. `element`: bytes of T.
constexpr uint32_t row_chunk(uint32_t columns, uint32_t threads, uint32_t element) {
  uint32_t chunk = 16 / element;
  while (uint64_t{chunk} * threads < columns) chunk *= 2;
  return chunk;
}
/// What a thread may have of them: it keeps their values in registers.
inline constexpr uint32_t kMaxRowChunk = 64;

/// Lines in a kernel's parameters, at most: CUDA takes 32764 bytes, of which the first parameter, a
/// LaunchPlan, has some.
inline constexpr uint32_t kMaxCompiledLines = 2000;
/// Lines of one block, at most: a block whose lines are in memory fetches them into shared memory,
/// of which a kernel has 48 KiB unasked.
inline constexpr uint32_t kMaxSharedLines = 2800;

}  // namespace mscclc::device
