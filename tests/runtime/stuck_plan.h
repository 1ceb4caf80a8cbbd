// A plan that hangs, for tests of what then happens. The prover refuses it.
#pragma once

#include <memory>

#include "ir/program.h"
#include "runtime/communicator.h"

namespace mscclc::testing {

/// A plan in which rank 0 waits for a signal that rank 1 should send, and does not. Rank 1
/// waits for nothing, however late rank 0 is.
std::shared_ptr<const Program> stuck_plan();

/// Loads a plan that is not proved. Of what is said only errors are handed on.
std::unique_ptr<Executable> load_unproved(Communicator& communicator,
                                          const std::shared_ptr<const Program>& plan,
                                          uint64_t max_bytes, Diagnostics& diagnostics);

}  // namespace mscclc::testing
