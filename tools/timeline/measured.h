// The timeline of a call as its blocks stamped it, with what the plan says of it: which steps there
// are, and which sends what to which.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "executor/cost/timeline.h"
#include "ir/support/result.h"
#include "tools/timeline/trace.h"

namespace mscclc::timeline {

/// What the blocks of a rank stamped (executor/stamps.h), a row of `words` for each.
struct RankStamps {
  std::vector<uint64_t> rows;
  uint32_t words = 0;
  int64_t ahead_ns = 0;  ///< how far the rank's clock is ahead of rank 0's
};

/// Words of a row that hold all stamps of any block of a plan, or as many as fit in a message.
uint32_t stamp_words(const cost::Timeline& plan);

/// `plan`: the call with its arrows, predicted for whatever machine. `how` stands above the
/// timeline. Fails where stamps are missing.
Result<Trace> measured_trace(const cost::Timeline& plan, const std::vector<RankStamps>& ranks,
                             const std::string& how);

}  // namespace mscclc::timeline
