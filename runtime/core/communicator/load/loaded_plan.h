// What is fixed of a plan that a communicator loads, from the beginning.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "executor/lower.h"
#include "ir/program/program.h"
#include "runtime/api/communicator.h"
#include "runtime/core/communicator/call/placement.h"
#include "runtime/core/group/group.h"

namespace mscclc {

/// What messages are cut in where a plan's memory is laid out: rows of the widest type, so that
/// chunks of calls of the others are no longer.
uint32_t capacity_granule(const Program& plan);

struct LoadedPlan {
  /// REQUIRES: the plan is for as many ranks as the group has.
  LoadedPlan(std::shared_ptr<RankGroup> group, std::shared_ptr<const Program> plan,
             const LoadOptions& options);

  uint32_t blocks() const { return plan->ranks[rank].blocks; }
  const std::vector<Channel>& channels() const { return plan->ranks[rank].channels; }
  bool stages(uint32_t of, uint32_t side) const { return access.stages(of, side); }
  /// Must ranks bind calls together?
  bool collective_bind() const { return options.zero_copy && access.any(); }
  /// Does a switch join this rank's memory to that of others?
  bool joins_switch() const;
  /// Does the proxy send what this end of a channel signals?
  bool goes_by_proxy(uint32_t channel) const;

  const std::shared_ptr<RankGroup> group;
  const std::shared_ptr<const Program> plan;
  const LoadOptions options;
  const uint32_t rank;
  const uint32_t element;  ///< bytes of an element of sentinel packets
  const PeerAccess access;
  const bool takes_pieces;    ///< calls may have CollectiveCall::row_pitch
  const bool staged_rows[2];  ///< by side: where it has rows, calls go through staging
  const Chunking capacity;
  const PlanUse use;
  const uint64_t parts;   ///< Chunking::parts_of_message()
  const uint32_t number;  ///< of this load in the communicator, the same on all ranks
};

}  // namespace mscclc
