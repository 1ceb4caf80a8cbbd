// Which steps an op becomes: the column `runs_as` of ops.def.
#pragma once

#include <array>
#include <cstdint>

#include "executor/interpreter/step_kinds.h"
#include "ir/ops/ops.h"

namespace mscclc {

/// The steps of an op, in order.
class StepList {
 public:
  constexpr void add(device::StepKind kind) { kinds_[count_++] = kind; }
  constexpr const device::StepKind* begin() const { return kinds_.data(); }
  constexpr const device::StepKind* end() const { return kinds_.data() + count_; }

 private:
  std::array<device::StepKind, 3> kinds_{};
  uint8_t count_ = 0;
};

/// The steps that machines run for an op; `by_port`: its destinations lie at ports.
const StepList& runs_as(OpKind op, bool by_port);

}  // namespace mscclc
