#include "passes/expand/unit_order.h"

#include <algorithm>

#include "ir/support/precondition.h"

namespace mscclc::expand {

/// All rounds stand where the pipeline's first op stands.
void UnitOrder::write_out(const std::vector<Op>& ops, uint32_t loop, uint32_t rounds) {
  written_out_.clear();
  first_round_.assign(ops.size(), kNone);
  round_ops_ = 0;
  for (uint32_t i = 0; i < ops.size(); ++i) {
    if (ops[i].loop != loop) {
      written_out_.push_back(ops[i]);
      continue;
    }
    if (round_ops_ != 0) continue;
    const size_t begin = written_out_.size();
    for (uint32_t k = i; k < ops.size(); ++k) {
      if (ops[k].loop != loop) continue;
      first_round_[k] = static_cast<uint32_t>(written_out_.size());
      written_out_.push_back(ops[k]);
      written_out_.back().loop = kNone;
    }
    round_ops_ = static_cast<uint32_t>(written_out_.size() - begin);
    for (size_t more = size_t{round_ops_} * (rounds - 1); more > 0; --more) {
      written_out_.push_back(Op(written_out_[written_out_.size() - round_ops_]));
    }
  }
}

bool UnitOrder::find(uint32_t rank, uint32_t units, std::vector<UnitUse>& uses) {
  precondition([&] {
    return std::ranges::all_of(program_.ranks[rank].ops,
                               [](const Op& op) { return op.block != kNone; });
  });
  if (uses.empty()) return true;
  std::vector<Op>& ops = program_.ranks[rank].ops;
  write_out(ops, ops[uses[0].fill].loop, units + 1);
  ops.swap(written_out_);  // which BlockRun looks at
  const uint32_t last_round = round_ops_ * units;
  const auto refill = [&](const UnitUse& u) { return first_round_[u.fill] + last_round; };
  std::ranges::stable_sort(uses, {}, refill);
  run_.start(program_, rank);
  const bool ended = run_.run([&](uint32_t at) {
    for (UnitUse& u : std::ranges::equal_range(uses, at, {}, refill)) {
      const uint32_t use = first_round_[u.use];
      const uint32_t row = run_.clocks.row(ops[at].block);
      u.ordered = run_.clocks.known(row, ops[use].block) >= run_.count(use);
    }
    return true;
  });
  ops.swap(written_out_);
  return ended;
}

}  // namespace mscclc::expand
