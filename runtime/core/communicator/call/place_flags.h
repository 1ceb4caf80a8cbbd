// The flags of a call: checked against what the plan declares, where each array lies, and whether
// the plan and the other side have room beside one another.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "executor/block_programs.h"
#include "ir/diagnostics/diagnostic.h"
#include "ir/program/program.h"
#include "ir/support/result.h"
#include "runtime/api/call.h"
#include "runtime/core/communicator/call/call_memory.h"

namespace mscclc {

/// What of a call its flags must fit.
struct FlagsOfCall {
  const Program& plan;
  uint32_t rank = 0;
  bool moves_data = true;              ///< false: a message of no bytes, of which no call is made
  std::span<const CallMemory> others;  ///< this rank's: flags overlap none of it
};

/// By array of the plan. `places`: of the executable's calls before, or empty. False: reported
/// (bad-external), with what the call should give.
[[nodiscard]] bool place_flags(const FlagsOfCall& call, std::span<const CallFlags> flags,
                               std::vector<BlockPrograms::Places::Flags>& places,
                               Diagnostics& diagnostics);

/// What a caller says of the room that its plan and the other side share.
struct FlagRoom {
  uint32_t multiprocessors = 0;  ///< of the device; 0: blocks of any number run at once
  uint32_t budget = 0;           ///< CollectiveCall::budget
  LaunchOrder order = LaunchOrder::other_first;
};

/// Might the plan, or its other side, wait forever for room that the other holds at this rank
/// (docs/design/overlap.md#room-for-both)? False: reported (flags-not-resident), with the remedy.
[[nodiscard]] bool check_room(const Program& plan, uint32_t rank, const FlagRoom& room,
                              Diagnostics& diagnostics);

/// Reports that the runtime copies what an array of the plan is for (flags-staged); false.
bool refuse_staged(const Program& plan, const FlagArray& array, Diagnostics& diagnostics);

}  // namespace mscclc
