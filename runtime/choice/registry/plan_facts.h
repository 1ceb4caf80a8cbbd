// Whether a plan can serve a request, and whether it says that it wants to.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "executor/lower.h"
#include "ir/program/program.h"
#include "ir/support/result.h"
#include "runtime/api/plan_provider.h"

namespace mscclc {

/// What of a plan decides whether it can serve a call; found once.
class PlanFacts {
 public:
  PlanFacts() = default;
  /// Of `picked.plan`.
  explicit PlanFacts(const PickedPlan& picked);

  /// Why this plan cannot serve such calls: "it is for 8 ranks". `select`: its own options, where
  /// these count as well; nullptr: they do not. An order that its sums do not keep comes after
  /// them: under another one they would leave the call to others, too.
  std::optional<Error> why_not(const Program& plan, const PlanRequest& request,
                               const Select* select = nullptr) const;

 private:
  std::optional<Error> of_order(const Program& plan, const PlanRequest& request) const;
  std::optional<Error> of_contract(const Contract& contract, const LibraryCall& call) const;
  static std::optional<Error> of_placement(const Contract& contract, const LibraryCall& call);
  std::optional<Error> of_machine(const Program& plan, const PlanRequest& request) const;

  PlanUse use_;
  std::optional<Proof> sums_;  ///< PickedPlan::sums()
  uint32_t blocks_ = 0;        ///< the most of any rank
  bool switches_ = false;      ///< it has switch channels
  bool lines_ = false;         ///< it has packets in LL128
  bool replayable_ = true;     ///< a captured call may be replayed
};

/// A plan and its facts.
struct CheckedPlan {
  PickedPlan picked;
  PlanFacts facts;
};

/// "allreduce over 4 ranks", "broadcast over 4 ranks with root 2", "allreduce over 16 ranks on 2
/// nodes"
std::string call_text(const LibraryCall& call);

}  // namespace mscclc
