// A replay that hangs is ended by the host.
#pragma once

#include "tests/gpu/stage/stage.h"

namespace mscclc::testing {

bool check_abort(const StageOptions& options);

}  // namespace mscclc::testing
