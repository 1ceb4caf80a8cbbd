// A plan that hangs, for tests of what then happens.
#pragma once

#include <memory>

#include "ir/program.h"

namespace mscclc::testing {

/// A plan in which rank 0 waits for a signal that rank 1 should send, and does not. Rank 1
/// waits for nothing, however late rank 0 is.
std::shared_ptr<const Program> stuck_plan();

}  // namespace mscclc::testing
