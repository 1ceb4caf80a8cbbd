// A rank's process is killed in the middle of many calls.
#pragma once

#include "tests/gpu/stage/stage.h"

namespace mscclc::testing {

/// True if all other ranks soon end with an error that names it. REQUIRES: ranks are processes.
bool check_killed(const StageOptions& options, uint32_t victim);

}  // namespace mscclc::testing
