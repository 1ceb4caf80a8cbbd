// Which ops of a plan synchronise, and why each is there: what it keeps in order.
#pragma once

#include <vector>

#include "executor/cost/explanation.h"
#include "ir/program/program.h"

namespace mscclc::cost {

/// A line for each kind of op at each place of the source, in the order of the first rank that has
/// one. REQUIRES: program.split.
std::vector<SyncLine> syncs_of(const Program& program);

}  // namespace mscclc::cost
