// What a run gives, against what its object needs.
#pragma once

#include "runtime/core/overlap/config.h"

namespace mscclc::overlap {

/// What a backend asks of a run.
struct RunNeeds {
  uint64_t workspace_bytes = 0;  ///< that the call must bring; 0: none
  bool gives_gathered = true;    ///< the call may ask for what was gathered
  uint32_t ranks = 1;
};

/// False: reported (bad-call), with what is required and what was given.
[[nodiscard]] bool check_run(const OverlapConfig& config, const OverlapCall& call,
                             const RunNeeds& needs, Diagnostics& diagnostics);

}  // namespace mscclc::overlap
