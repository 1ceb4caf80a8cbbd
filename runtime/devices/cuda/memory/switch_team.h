// Ranks join memory at a switch: one multicast object for a team, in which each region has its
// place, the same on all members; all channels of the team go through it.
//
//   step                  ranks         all ranks wait for it because
//   1 what would be bound all members   places depend on it; none goes on if one does not want to
//   2 create and export   first member
//   3 import, add GPU     all members   binding and mapping would block before the last one
//   4 bind, map           all members   reading what is not bound everywhere is undefined
//
// After each step every rank hears whether all could do it. If one could not, all let go of what
// they have, warn (multicast-unavailable), and go through the members one by one.
#pragma once

#include <memory>
#include <vector>

#include "runtime/api/bootstrap.h"
#include "runtime/devices/cuda/memory/exchange.h"

namespace mscclc::cuda {

struct JoinRequest {
  Bootstrap& bootstrap;
  const SharedContext& context;
  const Exchange& exchange;
  bool wanted;  ///< what a CudaDevice was opened with: else nothing of multicast is called
  const std::vector<uint32_t>& members;
  const std::vector<SwitchRegion>& regions;
};

/// Device::join_switch().
[[nodiscard]] bool join_multicast(const JoinRequest& request, std::unique_ptr<SwitchTeam>& team,
                                  Diagnostics& diagnostics);

}  // namespace mscclc::cuda
