#include "passes/fuse/fuse_runs.h"

#include <algorithm>
#include <bit>

#include "passes/framework/passes.h"
#include "passes/fuse/fuse_rules.h"

namespace mscclc::fusion {
namespace {

constexpr KindBits kind_bit(OpKind kind) { return KindBits{1} << static_cast<size_t>(kind); }

OpKind first_kind(KindBits kinds) { return static_cast<OpKind>(std::countr_zero(kinds)); }

}  // namespace

OpRanges::OpRanges() {
  for (const OpInfo& row : op_table()) {
    (row.moves_data() ? data_ : control_) |= kind_bit(row.kind);
    lefts_[static_cast<size_t>(row.kind)] = lefts_of(row.kind);
  }
  for (const OpInfo& row : op_table()) after_[static_cast<size_t>(row.kind)] = after(row);
}

const std::vector<OpRange>& OpRanges::find(const Rank& rank) {
  const auto is_port = [](const Channel& c) { return c.kind == ChannelKind::port; };
  const bool ports = std::any_of(rank.channels.begin(), rank.channels.end(), is_port);
  const KindBits closed = ports ? 0 : kind_bit(OpKind::put) | kind_bit(OpKind::put_with_signal);
  runs_.clear();
  open_.assign(count_blocks(rank) + 1, {});  // the last one for all groups, which stays open
  since_.resize(open_.size());
  for (Number n = 1; n <= rank.ops.size(); ++n) {
    const Op& op = rank.ops[n - 1];
    const size_t kind = static_cast<size_t>(op.kind);
    const KindBits cannot_pass = (control_ & kind_bit(op.kind)) != 0 ? closed : 0;
    const size_t place = op.block == kNone ? open_.size() - 1 : op.block;
    Open& open = open_[place];
    Since& since = since_[place];
    if (op.block != kNone && open.loop != op.loop) open.kinds = 0;
    open.loop = op.loop;
    const bool may_fuse = (open.kinds & lefts_[kind] & ~cannot_pass) != 0;
    const Steps steps = may_fuse ? follow(open.kinds, op.kind) : Steps{};
    const Number first = earliest(since, steps.lefts, n);
    if (may_fuse) add(first, n);
    if (op.block != kNone) open.kinds &= after_[kind] & ~cannot_pass;
    note(open, since, steps.results, first);
    note(open, since, kind_bit(op.kind), n);
  }
  return runs_;
}

OpRanges::Steps OpRanges::follow(KindBits kinds, OpKind right) const {
  Steps steps;
  for (KindBits rights = kind_bit(right), done = 0; rights != 0;) {
    const KindBits bit = rights & -rights;
    const OpKind kind = first_kind(bit);
    const KindBits lefts = kinds & lefts_[static_cast<size_t>(kind)];
    for (KindBits left = lefts; left != 0; left &= left - 1) {
      for (const Rule& rule : rules(first_kind(left), kind)) {
        steps.results |= kind_bit(rule.result);
      }
    }
    steps.lefts |= lefts;
    done |= bit;
    rights = steps.results & ~done;
  }
  return steps;
}

Number OpRanges::earliest(const Since& since, KindBits kinds, Number first) {
  for (; kinds != 0; kinds &= kinds - 1) {
    first = std::min(first, since[static_cast<size_t>(first_kind(kinds))]);
  }
  return first;
}

/// From op `first` on there may be ops of these kinds.
void OpRanges::note(Open& open, Since& since, KindBits kinds, Number first) {
  for (KindBits left = kinds; left != 0; left &= left - 1) {
    Number& number = since[static_cast<size_t>(first_kind(left))];
    const bool is_new = (open.kinds & left & -left) == 0;
    if (is_new || first < number) number = first;
  }
  open.kinds |= kinds;
}

/// Kinds of op that others can still join after an op of this kind.
KindBits OpRanges::after(const OpInfo& row) const {
  if (row.moves_data()) return data_;
  const KindBits port = kind_bit(OpKind::put_with_signal);
  if (row.has(kSignals) || row.has(kReleases) || row.has(kNotifiesFlags)) {
    return kind_bit(OpKind::signal) | kind_bit(OpKind::release) | kind_bit(OpKind::put) |
           kind_bit(OpKind::notify) | port;
  }
  if (row.has(kMeets) || row.has(kSyncs)) return 0;
  return kind_bit(OpKind::wait) | kind_bit(OpKind::acquire) | kind_bit(OpKind::flush) |
         kind_bit(OpKind::await) | port;
}

void OpRanges::add(Number first, Number last) {
  while (!runs_.empty() && runs_.back().last >= first) {
    first = std::min(first, runs_.back().first);
    runs_.pop_back();
  }
  runs_.push_back({first, last});
}

}  // namespace mscclc::fusion
