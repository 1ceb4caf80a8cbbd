// What a run gives, against what its object needs.
#pragma once

#include "runtime/core/overlap/config.h"

namespace mscclc::overlap {

/// False: reported (bad-call), with what is required and what was given. `workspace_bytes`: what
/// the call must bring; 0: nothing.
[[nodiscard]] bool check_run(const OverlapConfig& config, const OverlapCall& call,
                             uint64_t workspace_bytes, Diagnostics& diagnostics);

}  // namespace mscclc::overlap
