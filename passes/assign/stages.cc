#include "passes/assign/stages.h"

namespace mscclc::assign {

Stages::Stages(const Program& program) : program_(program) {
  // Over several chunks a round moves other bytes of a chunk in one reference than in another.
  for (const Loop& loop : program.loops) overlaps_.push_back(loop.chunks == 1);
  find_shared_units();
}

/// Units that another rank reads or fills are free again when it says so: by a signal whose round
/// is not that of the wait.
void Stages::find_shared_units() {
  const auto for_units = [this](auto visit) {
    for (uint32_t r = 0; r < program_.ranks.size(); ++r) {
      for (const Op& op : program_.ranks[r].ops) {
        if (op.loop == kNone || !info(op.kind).moves_data()) continue;
        const Operand* o = program_.operands.at(op.operands);
        for (const Operand* end = o + op.dsts + op.srcs; o != end; ++o) {
          if (program_.buffer_of(r, *o).units != 0) visit(r, op, *o);
        }
      }
    }
  };
  std::vector<std::vector<bool>> shared(program_.ranks.size());
  for (uint32_t r = 0; r < shared.size(); ++r) shared[r].resize(program_.ranks[r].buffers.size());
  const auto owner = [this](uint32_t r, const Operand& o) {
    const bool here = o.channel == kNone || program_.ranks[r].channels[o.channel].peer == kNone;
    return here ? r : program_.ranks[r].channels[o.channel].peer;
  };
  for_units([&](uint32_t r, const Op&, const Operand& o) {
    if (o.channel != kNone) shared[owner(r, o)][o.buffer] = true;
  });
  for_units([&](uint32_t r, const Op& op, const Operand& o) {
    if (shared[owner(r, o)][o.buffer]) overlaps_[op.loop] = false;
  });
}

void Stages::find(uint32_t rank) {
  const std::vector<Op>& ops = program_.ranks[rank].ops;
  stage_.assign(ops.size(), 0);
  uint32_t stage = 0;
  for (size_t i = 0; i < ops.size(); ++i) {
    const bool goes_on = i > 0 && ops[i - 1].loop == ops[i].loop;
    const bool waits = info(ops[i].kind).has(kWaits);
    if (!goes_on) stage = 0;
    if (goes_on && waits && !info(ops[i - 1].kind).has(kWaits)) ++stage;
    if (ops[i].loop != kNone) stage_[i] = stage;
  }
}

}  // namespace mscclc::assign
