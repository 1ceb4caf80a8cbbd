// Stamps of a launch: when each block began each of its steps, in memory that the caller gives
// (LaunchPlan::stamps). A row of words for each block:
//
//   word kStampsDue       how many stamps the block had; those that do not fit are left out
//   word kStampsBegan     when it began, in nanoseconds of the device's clock ...
//   word kStampsEnded     ... and when it ended; 0: it has not
//   word kStampsTicks     ticks between the two
//   words from kStampHead what (8 bits), the op's index in the IR (20), ticks since the block began
//   (36)
#pragma once

#include <cstdint>

#include "executor/interpreter/layout.h"

namespace mscclc::device {

enum StampWord : uint32_t { kStampsDue, kStampsBegan, kStampsEnded, kStampsTicks, kStampHead };

/// What begins, where it is not a step (then it is the StepKind).
enum StampAt : uint32_t {
  kStampProgram = 0xf0,  ///< the program is in shared memory
  kStampAhead,           ///< the kernel ahead has ended
  kStampCounts,          ///< the counts of the call are there
};

inline constexpr uint32_t kStampSource = 20, kStampTicks = 36;  ///< bits

/// What does not fit is as large as it can be.
MSCCLC_HD inline uint64_t stamp_word(uint32_t what, uint32_t source, uint64_t ticks) {
  constexpr uint64_t kMaxTicks = (uint64_t{1} << kStampTicks) - 1;
  constexpr uint32_t kMaxSource = (1u << kStampSource) - 1;
  const uint64_t of_source = source < kMaxSource ? source : kMaxSource;
  return uint64_t{what} << (kStampSource + kStampTicks) | of_source << kStampTicks |
         (ticks < kMaxTicks ? ticks : kMaxTicks);
}

/// A stamp as it was made.
struct BlockStamp {
  uint32_t what = 0, source = 0;
  uint64_t ticks = 0;
};
inline BlockStamp stamp_of_word(uint64_t word) {
  return {static_cast<uint32_t>(word >> (kStampSource + kStampTicks)),
          static_cast<uint32_t>(word >> kStampTicks) & ((1u << kStampSource) - 1),
          word & ((uint64_t{1} << kStampTicks) - 1)};
}

}  // namespace mscclc::device
