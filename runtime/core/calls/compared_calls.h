// With what the calls of a rank are compared, so that ranks that make different ones learn of it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "runtime/api/lane.h"
#include "runtime/core/calls/call_board.h"
#include "runtime/core/calls/far_calls.h"

namespace mscclc {

struct ComparedCalls {
  /// Of the calls of executables that are loaded in turn; nullptr: no rank is beside this one.
  std::unique_ptr<CallBoard> board;
  /// The same calls, compared with what comes over lanes; nullptr: no lane leads anywhere.
  std::shared_ptr<FarCalls> far;
  /// Notes something on the lanes that were used last ...
  std::function<void(const LaneNote&)> note_far;
  uint32_t notes_far = 0;         ///< ... of the executable of this number
  bool at_launch = false;         ///< MSCCLC_CHECK_CALLS: each launch is compared on all ranks
  uint64_t checked_launches = 0;  ///< so far
};

}  // namespace mscclc
