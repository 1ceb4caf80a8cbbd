// Checks every call of a run on the simulator: the input is filled in and the output poisoned
// right before it; right after it, while other ranks may still run, the output must hold what was
// promised.
#pragma once

#include <optional>

#include "executor/oracle/output_check.h"
#include "executor/oracle/row_check.h"
#include "executor/simulator/cluster.h"

namespace mscclc {

class CollectiveCheck : public CallHooks {
 public:
  /// Which inputs a plan's calls have: several plans must not have the same.
  struct Inputs {
    uint64_t first = 0, step = 1;
  };
  /// REQUIRES: cluster.prepare() for a call on `values`' type and reduction.
  CollectiveCheck(Cluster& cluster, const TestValues& values, const Inputs& inputs);
  CollectiveCheck(Cluster& cluster, const TestValues& values)
      : CollectiveCheck(cluster, values, Inputs()) {}

  void before(uint32_t rank, uint64_t call) override;
  void after(uint32_t rank, uint64_t call) override;

  uint64_t wrong() const { return outputs_.wrong() + (rows_ ? rows_->wrong() : 0); }
  /// Seconds spent in here.
  double seconds() const { return seconds_; }
  void report(Diagnostics& diagnostics) const {
    outputs_.report(diagnostics, cluster_.of_plan());
    if (rows_) rows_->report(diagnostics, cluster_.of_plan());
  }

 private:
  void check_barrier(uint32_t rank, uint64_t call);

  Cluster& cluster_;
  const Inputs inputs_;
  OutputCheck outputs_;
  std::optional<RowCheck> rows_;  ///< of a collective of rows
  double seconds_ = 0;
};

}  // namespace mscclc
