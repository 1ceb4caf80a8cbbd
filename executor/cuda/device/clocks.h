// Where the time of a thread block goes, in builds with --define=clocks=on: stamps of its
// multiprocessor's clock, one row of words for each block of the last call.
//
//   word 0       how many stamps follow
//   word i       what (ClockAt, or kClockSteps + OpKind where a step begins) in the upper 16 bits,
//                below them cycles since the block began
#pragma once

#include <cstdint>

namespace mscclc::cuda {

inline constexpr uint32_t kMostClockBlocks = 1024;
inline constexpr uint32_t kClockWords = 48;  ///< of a row; later stamps are left out
inline constexpr uint32_t kClockShift = 48;

enum ClockAt : uint32_t {
  kClockProgram = 1,  ///< the program is in shared memory
  kClockAhead,        ///< the kernel ahead has ended
  kClockCounts,       ///< the counts of the call are there
  kClockEnd,          ///< the block has done its steps
  kClockSteps,
};

/// Is this a build with stamps?
bool has_clocks();
/// Calls that are launched or captured from now on write their rows to device memory: kClockWords ×
/// kMostClockBlocks words; nullptr: nowhere. Nothing in builds without stamps.
void set_clocks(uint64_t* rows);

}  // namespace mscclc::cuda
