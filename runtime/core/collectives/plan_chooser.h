// Picks the plan of each call by name, and how much of a large call it does at once.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "runtime/api/collectives.h"
#include "runtime/api/communicator.h"
#include "runtime/core/collectives/arguments.h"
#include "runtime/core/collectives/loaded_plans.h"
#include "runtime/core/collectives/where_ranks_run.h"
#include "runtime/support/result_kind.h"

namespace mscclc {

/// Its choices are the same on all ranks. Thread safety: one thread at a time.
class PlanChooser {
 public:
  /// What is the same for all calls of a job.
  struct Job {
    WhereRanksRun where;
    SumOrder order = kDefaultOrder;  ///< of calls that do not say it
    uint32_t most_blocks = 0;        ///< PlanRequest::most_blocks
  };

  /// `piece_bytes`: CollectivesOptions. What it is given must outlive it.
  PlanChooser(Communicator& communicator, std::shared_ptr<PlanProvider> provider,
              uint64_t piece_bytes, LoadedPlans& loaded)
      : communicator_(communicator),
        provider_(std::move(provider)),
        piece_bytes_(piece_bytes),
        loaded_(loaded) {}

  void set_job(const Job& job) { job_ = job; }

  /// The plan for planned_call(), if there is one; `passed_over`: nullptr, or gets the others.
  [[nodiscard]] PlanChoice choose(const PlannedCall& planned, bool capturing,
                                  std::vector<PassedOver>* passed_over, Diagnostics& diagnostics);
  /// The same for a call on a stream; reports where there is none (no-plan, no-plan-in-order).
  [[nodiscard]] PlanChoice pick(const PlannedCall& planned, StreamHandle stream,
                                Diagnostics& diagnostics);
  /// What such a call needs of its plan.
  LoadedPlans::Need need(const CollectiveCall& planned) const;

 private:
  PlanRequest request(const PlannedCall& planned, bool capturing) const;
  void report_no_plan(const PlannedCall& planned, bool capturing, Diagnostics& diagnostics);

  Communicator& communicator_;
  const std::shared_ptr<PlanProvider> provider_;
  const uint64_t piece_bytes_;
  LoadedPlans& loaded_;
  Job job_;
};

}  // namespace mscclc
