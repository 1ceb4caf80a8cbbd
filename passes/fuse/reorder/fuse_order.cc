#include "passes/fuse/reorder/fuse_order.h"

#include <algorithm>

namespace mscclc::fusion {

void Order::Latest::record(Number op, uint32_t with) {
  if (op > last) {
    third = prev;
    prev = last;
    prev_use = use;
    last = op;
    use = with;
  } else if (op == last) {
    use = kNone;
  } else if (op > prev) {
    third = prev;
    prev = op;
    prev_use = with;
  } else if (op == prev) {
    prev_use = kNone;
  } else {
    third = std::max(third, op);
  }
}

/// What `from` did has been done by `to`, an earlier op. Where it is no longer known who came
/// before, a later one stands for it, which forbids too much rather than too little.
void Order::Latest::move(Number from, Number to) {
  if (last != from) return;
  if (prev < to) {
    last = to;
  } else if (prev == to) {
    last = to;
    use = kNone;
    prev = third;
    prev_use = kNone;
  } else {
    last = prev;
    use = prev_use;
    prev = std::max(third, to);
    prev_use = kNone;
  }
}

Order::Order(const Program& program)
    : program_(program), places_(program), touches_(program), edges_(program) {
  for (const OpInfo& row : op_table()) {
    uint8_t role = 0;
    if (row.moves_data()) role |= kData;
    if (row.has(kSignals) || row.has(kReleases) || row.has(kNotifiesFlags)) role |= kPublishes;
    if (row.has(kWaits) || row.has(kAcquires) || row.has(kFlushes) || row.has(kAwaitsFlags))
      role |= kAwaits;
    if (row.has(Effects::kPolls)) role |= kPolls;
    if (role == 0) role = kWall;
    role_of_[static_cast<size_t>(row.kind)] = role;
  }
}

bool Order::start(uint32_t rank) {
  rank_ = &program_.ranks[rank];
  rank_id_ = rank;
  places_.start(rank);
  const Number last = static_cast<Number>(rank_->ops.size());
  // Ops of other places, wherever they are written, may be waited for.
  whole_ = Edges::possible(program_, *rank_);
  if (whole_ && !touches_.start(rank, 1, last)) return false;
  edges_.start(rank, whole_ ? &touches_ : nullptr, places_);
  if (whole_) cells_.assign(touches_.cells(), {});
  blocks_.assign(places_.blocks(), {});
  wall_ = kNoOp;
  roles_.resize(last + 1);
  edge_bits_.resize(last + 1);
  first_.resize(last + 1);
  last_.resize(last + 1);
  next_.resize(last + 1);
  return true;
}

bool Order::start_run(Number first, Number last) {
  if (whole_) return true;
  if (!touches_.start(rank_id_, first, last)) return false;
  cells_.assign(touches_.cells(), {});
  return true;
}

/// Calls change(latest) for all that an op's role and edges count for, in each block of its place.
template <class Change>
void Order::each_latest(Number op, Change&& change) {
  const uint8_t role = roles_[op], edges = edge_bits_[op];
  for (const uint32_t b : places_.blocks_of(places_.of(op))) {
    Block& block = blocks_[b];
    if (role & kData) change(block.data);
    if (role & kPublishes) change(block.publishes);
    if (role & kAwaits) change(block.awaits);
    if (role & kPolls) change(block.polls);
    if (edges & kWaitsForOthers) change(block.waits_for_others);
    if (edges & kOthersWait) change(block.others_wait);
  }
}

void Order::add(Number n) {
  const Op& op = rank_->ops[n - 1];
  roles_[n] = role_of_[static_cast<size_t>(op.kind)];
  edge_bits_[n] = edges_.of(n);
  first_[n] = last_[n] = n;
  next_[n] = kNoOp;
  if (places_.of(n) == kNone) return add_unplaced(n);
  for (const uint32_t b : places_.blocks_of(places_.of(n))) {
    Block& block = blocks_[b];
    if (block.loop != op.loop) block.wall = n - 1;
    block.loop = op.loop;
    if (roles_[n] & kWall) block.wall = n;
  }
  each_latest(n, [n](Latest& latest) { latest.record(n); });
  for (const Touch& touch : touches_.of(n)) {
    Cell& cell = cells_[touch.cell];
    (touches_.use(touch.use).write ? cell.write : cell.read).record(n, touch.use);
  }
}

/// An op without place may run in any block. A barrier runs in those that it names.
void Order::add_unplaced(Number n) {
  const Op& op = rank_->ops[n - 1];
  if (op.kind != OpKind::barrier) {
    wall_ = n;
    return;
  }
  for (const Operand& o : program_.dsts(op)) blocks_[o.first].wall = n;
}

Order::Window Order::window(Number op) const {
  Window w;
  w.wall = wall_;
  const auto raise = [op](Number& to, const Latest& latest) {
    to = std::max(to, latest.other(op));
  };
  for (const uint32_t b : places_.blocks_of(places_.of(op))) {
    const Block& block = blocks_[b];
    raise(w.data, block.data);
    raise(w.publishes, block.publishes);
    raise(w.awaits, block.awaits);
    raise(w.polls, block.polls);
    raise(w.waits_for_others, block.waits_for_others);
    raise(w.others_wait, block.others_wait);
    w.wall = std::max(w.wall, block.wall);
  }
  if (edge_bits_[op] & kWaitsForOthers) w.waits_for_others = std::max(w.waits_for_others, op);
  return w;
}

Meet Order::meet(Number left, Number right, const Flow& flow) const {
  const Window since = window(right);
  if (left <= since.wall || since.waits_for_others > left) return Meet::never;
  if (may_rise(left, right, since, flow) && fits(left, right, flow, true)) return Meet::at_left;
  if (may_sink(left, right, since, flow) && fits(left, right, flow, false) &&
      is_free(left, right)) {
    return Meet::at_right;
  }
  return Meet::never;
}

/// As far as synchronisation is concerned: may the right op move up to the left one?
bool Order::may_rise(Number left, Number right, const Window& since, const Flow& flow) const {
  const uint8_t role = roles_[right];
  if (role & kPublishes) return !(role & kAwaits) && since.data <= left && since.awaits <= left;
  if (role & kAwaits) return since.data <= left && since.publishes <= left;
  if (since.publishes > left || since.awaits > left || since.polls > left) return false;
  if (!(role & kPolls) || flow.waits_anyway) return true;
  return since.data <= left && since.others_wait < left;
}

/// And the left one down to the right one?
bool Order::may_sink(Number left, Number right, const Window& since, const Flow& flow) const {
  if (roles_[left] != kData || since.others_wait > left) return false;
  if (since.publishes > left || since.awaits > left || since.polls > left) return false;
  const bool polls = (roles_[right] & kPolls) && !flow.waits_anyway;
  return !polls || since.others_wait < left;
}

/// Is all that the right op touches as it would find it at the left one (if it rises), and does
/// what it has in common with the left one agree with `flow`?
bool Order::fits(Number left, Number right, const Flow& flow, bool rising) const {
  uint32_t uses = 0, counted = kNone;
  for (Number part = first_[right]; part != kNoOp; part = next_[part]) {
    for (const Touch& touch : touches_.of(part)) {
      const Use& use = touches_.use(touch.use);
      const Number writer = cells_[touch.cell].write.other(right);
      if (!use.memory) {
        if (flow.channels ? writer != left : writer >= left) return false;
      } else if (use.write) {
        if (!fits_write(left, right, touch, flow, rising)) return false;
      } else {
        if (!fits_read(left, right, touch, rising)) return false;
        if (writer != left || touch.use == counted) continue;
        counted = touch.use;
        ++uses;
      }
    }
  }
  return uses == flow.uses;
}

bool Order::fits_read(Number left, Number right, const Touch& touch, bool rising) const {
  const Latest& write = cells_[touch.cell].write;
  const Number writer = write.other(right);
  if (writer == left) return same_stretch(write.use_of(left), touch.use);
  return writer < left || !rising;
}

/// Of chunks that the left op reads and the right one writes both must mean the same stretch: then
/// each element is read before it is written, by the same thread, in the fused op, too.
bool Order::fits_write(Number left, Number right, const Touch& touch, const Flow& flow,
                       bool rising) const {
  const Cell& cell = cells_[touch.cell];
  const Number writer = cell.write.other(right), reader = cell.read.other(right);
  if (writer == left) {
    if (!fits_second_write(left, touch, flow)) return false;
  } else if (writer > left && rising) {
    return false;
  }
  if (reader == left) return same_stretch(cell.read.use_of(left), touch.use);
  return reader < left;
}

/// May one op write what the left op has written, and the right one writes again? A result may be.
/// So may a slot that the right op empties: the packets that the left one has made there go
/// straight on. But a slot that the left op has emptied waits for other packets, or holds them: it
/// must be empty before those are stored, or taken.
bool Order::fits_second_write(Number left, const Touch& touch, const Flow& flow) const {
  const uint32_t first = cells_[touch.cell].write.use_of(left);
  if (!same_stretch(first, touch.use) || touches_.use(first).empties) return false;
  return flow.rewrites || touches_.use(touch.use).empties;
}

/// Is what the left op touches left alone until the right one?
bool Order::is_free(Number left, Number right) const {
  for (Number part = first_[left]; part != kNoOp; part = next_[part]) {
    for (const Touch& touch : touches_.of(part)) {
      const Cell& cell = cells_[touch.cell];
      if (cell.write.other(right) > left) return false;
      if (touches_.use(touch.use).write && cell.read.other(right) > left) return false;
    }
  }
  return true;
}

Number Order::merge(Number left, Number right, Meet where) {
  const bool rises = where == Meet::at_left;
  const Number moving = rises ? right : left, to = rises ? left : right;
  each_latest(moving, [&](Latest& latest) { rises ? latest.move(moving, to) : latest.record(to); });
  for (Number part = first_[moving]; part != kNoOp; part = next_[part]) {
    for (const Touch& touch : touches_.of(part)) {
      Cell& cell = cells_[touch.cell];
      Latest& latest = touches_.use(touch.use).write ? cell.write : cell.read;
      rises ? latest.move(moving, to) : latest.record(to, touch.use);
    }
  }
  roles_[to] |= roles_[moving];
  edge_bits_[to] |= edge_bits_[moving];
  next_[last_[left]] = first_[right];
  first_[to] = first_[left];
  last_[to] = last_[right];
  return to;
}

}  // namespace mscclc::fusion
