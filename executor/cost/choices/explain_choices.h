// Which plan the library has for an explained call, and what its other plans would cost.
#pragma once

#include "executor/cost/explanation.h"
#include "ir/program/program.h"
#include "plans/format/machines/machine.h"

namespace mscclc {

/// Fills in why_picked and choices: the plan that is explained, what the library picks, and the
/// fastest of its rows for about that size. Its sums keep to `order`, or to more if the plan says
/// so. Nothing if the library has none for the collective, or ranks are many.
void explain_choices(const Program& program, const Call& call, const Machine& machine,
                     SumOrder order, cost::Explanation& explanation);

}  // namespace mscclc
