// A plan on a machine: what a call of some size takes. Lowers the plan once, for all sizes.
//
//   Model model(program);
//   std::optional<Prediction> p = model.predict(call, machine, diagnostics);
#pragma once

#include <optional>

#include "executor/cost/timeline.h"
#include "executor/lower.h"
#include "ir/diagnostics/diagnostic.h"
#include "ir/program/program.h"
#include "ir/support/precondition.h"
#include "plans/format/machines/machine.h"

namespace mscclc::cost {

class Model {
 public:
  /// The program must outlive the model.
  explicit Model(const Program& program) : program_(program) {}

  /// When the steps of a call begin and end. Errors: those of a call that the plan cannot do,
  /// machine-ranks, plan-hangs.
  [[nodiscard]] std::optional<Timeline> predict(Call call, const Machine& machine,
                                                Diagnostics& diagnostics,
                                                Detail detail = Detail::steps);
  /// The plan as it was lowered for the last call. REQUIRES: predict() has been called.
  const DeviceProgram& device() const {
    precondition(lowered_);
    return device_;
  }

 private:
  bool lower_once(Diagnostics& diagnostics);

  const Program& program_;
  DeviceProgram device_;
  bool lowered_ = false;
};

/// Can a machine run a program: has it a GPU for each rank, and on one node those that share
/// memory? Reports why not (machine-ranks).
[[nodiscard]] bool fits(const Program& program, const Machine& machine, Diagnostics& diagnostics);

/// The call of a message of so many bytes, or the largest that is a whole number of elements.
Call call_of(const Program& program, uint64_t bytes, Dtype dtype, ReduceOp reduce = ReduceOp::sum);

}  // namespace mscclc::cost
