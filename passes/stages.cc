#include "passes/stages.h"

#include <algorithm>

namespace mscclc {

void Stages::find(const Program& program, uint32_t rank) {
  const std::vector<Op>& ops = program.ranks[rank].ops;
  stage_.assign(ops.size(), 0);
  overlaps_.resize(program.loops.size());
  // Over several chunks a round moves other bytes of a chunk in one reference than in another.
  for (size_t l = 0; l < overlaps_.size(); ++l) overlaps_[l] = program.loops[l].chunks == 1;
  uint32_t stage = 0;
  for (size_t i = 0; i < ops.size(); ++i) {
    const bool goes_on = i > 0 && ops[i - 1].loop == ops[i].loop;
    const bool waits = info(ops[i].kind).has(kWaits);
    if (!goes_on) stage = 0;
    if (goes_on && waits && !info(ops[i - 1].kind).has(kWaits)) ++stage;
    if (ops[i].loop != kNone) stage_[i] = stage;
  }
}

}  // namespace mscclc
