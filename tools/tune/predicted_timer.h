// Times of a machine that is not there: what the cost model predicts, and nothing that was
// measured.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "plans/format/machines/machine.h"
#include "tools/measure/call_timer.h"

namespace mscclc::tune {

class PredictedTimer : public CallTimer {
 public:
  /// `machine`: with a GPU for each rank of the plans.
  explicit PredictedTimer(Machine machine) : machine_(std::move(machine)) {}

  /// A call when calls follow one another, predicted. Nothing runs, so no result can be wrong: what
  /// the search finds has to be proved. Errors: those of cost::Model::predict().
  [[nodiscard]] std::optional<CallTime> time(const TimedCall& call,
                                             Diagnostics& diagnostics) override;

 private:
  const Machine machine_;
};

}  // namespace mscclc::tune
