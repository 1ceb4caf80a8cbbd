// What a job picks for a call: a message that is too large for its plan is made of pieces.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "ir/diagnostics/diagnostic.h"
#include "runtime/api/plan_provider.h"

namespace mscclc {

/// The largest message that a plan does at once, as more would take too much memory; ~0: any.
/// `piece_bytes`: CollectivesOptions. `zero_copy`: LoadOptions.
uint64_t most_at_once(const Program& plan, uint64_t piece_bytes, bool zero_copy);

/// What most_at_once() may give besides ~0, smallest first: messages of fewer bytes are never cut.
std::vector<uint64_t> sizes_at_once(uint64_t piece_bytes);

/// Elements, as CollectiveCall::count, of a message of at most so many bytes; at least one. Pieces
/// begin at whole lines, if the call does.
uint64_t count_within(const LibraryCall& call, uint64_t bytes);

/// A choice, and the bytes of the messages that are made of it: of the whole call, or of pieces.
struct JobChoice {
  std::shared_ptr<const PickedPlan> picked;
  uint64_t bytes = 0;
};
/// How a job divides messages.
struct PieceRules {
  uint64_t bytes = 0;  ///< CollectivesOptions::piece_bytes
  /// most_at_once() of a plan for the request, as it may be kept.
  std::function<uint64_t(const PickedPlan&)> most_at_once;
};
/// A message that is too large for its plan is made of calls that fit one: so what is picked for a
/// piece serves it. If nothing is, or the plan was registered by itself, the plan does it piece by
/// piece. As PlanProvider::pick(); `passed_over` is about the message, or the piece, that the
/// answer was picked for.
[[nodiscard]] JobChoice pick_for_job(PlanProvider& provider, const PlanRequest& request,
                                     const PieceRules& rules, std::vector<PassedOver>* passed_over,
                                     Diagnostics& diagnostics);
/// What communicators pick whose CollectivesOptions are the usual ones.
[[nodiscard]] JobChoice pick_for_job(PlanProvider& provider, const PlanRequest& request,
                                     std::vector<PassedOver>* passed_over,
                                     Diagnostics& diagnostics);

}  // namespace mscclc
