// A plan that hangs, for tests of what then happens. The prover refuses it.
#pragma once

#include <memory>

#include "ir/program/program.h"
#include "runtime/api/communicator.h"

namespace mscclc::testing {

/// What rank 1 of the stuck plan does before it is done, which rank 0 never is.
enum class RankOne {
  waits_for_nothing,  ///< it is done at once, however late rank 0 is, and rank 0 sends it nothing
  waits_for_rank_0,   ///< it is done once rank 0 has nothing left to do but its wait
};

/// A plan in which rank 0 waits for a signal that rank 1 should send, and does not.
std::shared_ptr<const Program> stuck_plan(RankOne rank_1 = RankOne::waits_for_nothing);

/// Loads a plan that is not proved. Of what is said only errors are handed on.
[[nodiscard]] std::unique_ptr<Executable> load_unproved(Communicator& communicator,
                                                        const std::shared_ptr<const Program>& plan,
                                                        uint64_t max_bytes,
                                                        Diagnostics& diagnostics);

}  // namespace mscclc::testing
