#include "compiler/builder/draft/draft.h"

namespace mscclc {

Draft::Draft(BuildReports& reports)
    : input_name(program.intern("input")),
      output_name(program.intern("output")),
      reports_(reports) {}

bool Draft::enter(uint32_t r) {
  rank = r;
  out = &program.ranks[r];
  if (entered(r)) return false;
  set_entered(r, true);
  return true;
}

void Draft::set_entered(uint32_t r, bool entered) {
  if (r >= entered_.size()) entered_.resize(program.ranks.size());
  entered_[r] = entered;
}

}  // namespace mscclc
