#include "passes/sync/block_syncs.h"

#include "passes/framework/group_run.h"

namespace mscclc::order {
namespace {

uint8_t role_of(const Program& program, uint32_t rank, const Op& op) {
  const OpInfo& row = info(op.kind);
  uint8_t role = 0;
  if (row.moves_data()) {
    role |= kData;
    const uint32_t channel = program.dsts(op)[0].channel;
    const bool posts =
        channel != kNone && program.ranks[rank].channels[channel].kind == ChannelKind::port;
    if (posts) role |= kPosts;
  }
  if (row.has(kSignals) || row.has(kReleases) || row.has(kNotifiesFlags))
    role |= op.relaxed ? kAnnounces : kAnnounces | kPublishes;
  if (row.has(kFlushes)) role |= kDrains | kAwaits;
  if (row.has(kWaits) || row.has(kAcquires) || row.has(kAwaitsFlags)) role |= kAwaits;
  if (row.has(kSyncs)) role |= kMeeting;
  if (op.kind == OpKind::sync || (row.has(kMeets) && op.dsts == 1)) role |= kWritten;
  return role;
}

Op make_sync(uint32_t block, uint32_t loop) {
  Op op;
  op.block = block;
  op.loop = loop;
  return op;
}

}  // namespace

void BlockSyncs::find(uint32_t rank, const BlockSequence& order, const BlockNeeds& needs) {
  ops_ = &program_.ranks[rank].ops;
  order_ = &order;
  needs_ = &needs;
  missing_.clear();
  roles_.resize(ops_->size());
  for (size_t i = 0; i < roles_.size(); ++i) roles_[i] = role_of(program_, rank, (*ops_)[i]);
  marks_.assign(ops_->size(), kNothing);
  for (const uint32_t head : needs.heads) mark_round(head);
  for (size_t b = 0; b + 1 < order.begin.size(); ++b) {
    walk_block(order.begin[b], order.begin[b + 1]);
  }
}

void BlockSyncs::mark_missing(uint32_t op, uint8_t mark, const Reason& reason) {
  if ((marks_[op] & mark) == 0) {
    missing_.push_back({op, order_->ops[reason.cause], reason.why});
  }
  marks_[op] |= mark;
}

/// Each round of the body that begins with op `head` must come after the one before: the threads
/// meet before its first data op, if not elsewhere in between.
void BlockSyncs::mark_round(uint32_t head) {
  uint32_t at = order_->position[head];
  while (!(roles_[order_->ops[at]] & kData)) ++at;
  marks_[order_->ops[at]] |= kFirstOfRound;
}

void BlockSyncs::walk_block(uint32_t begin, uint32_t end) {
  Since since;
  since.all.met = since.after.met = begin;
  for (uint32_t at = begin; at < end;) {
    const uint32_t loop = op_at(at).loop;
    uint32_t after = at + 1;
    if (loop == kNone) {
      step(at, since, begin);
    } else {
      while (after < end && op_at(after).loop == loop) ++after;
      walk_loop(at, after, since);
    }
    at = after;
  }
}

/// A body follows what stands before the pipeline once, and its own end in every other round.
void BlockSyncs::walk_loop(uint32_t begin, uint32_t end, Since& since) {
  Since round;
  in_rounds_ = true;
  for (int pass = 0; pass < 2; ++pass) {
    round.all.met = round.after.met = begin;
    for (uint32_t at = begin; at < end; ++at) step(at, round, begin);
  }
  in_rounds_ = false;
  enter_loop(begin, end, since);
  for (uint32_t at = begin; at < end; ++at) advance(at, since);
}

/// What the first round alone needs stands in front of the pipeline: once, not in every round.
void BlockSyncs::enter_loop(uint32_t begin, uint32_t end, Since& since) {
  Since first = since;
  for (uint32_t at = begin; at < end; ++at) {
    const Reason needed = reason(at, first.all, 0);
    const bool serves = first.written != kNone && reason(at, first.after, 0).need < needed.need;
    const bool in_front = first.written != kNone && first.written < begin;
    if (needed.need != Need::none && serves && (in_front || needed.need == Need::may)) {
      if (in_front) keep(since);
      keep(first);
    } else if (needed.need == Need::must) {
      mark_missing(order_->ops[begin], kBeforeLoop, needed);
      since = {};
      since.all.met = since.after.met = begin;
      return;
    }
    advance(at, first);
  }
}

/// The author's sync that was held back stays.
void BlockSyncs::keep(Since& since) {
  marks_[order_->ops[since.written]] |= kStays;
  since.all = since.after;
  since.written = kNone;
}

/// Sees whether the threads must meet before this op, and goes past it.
void BlockSyncs::step(uint32_t at, Since& since, uint32_t begin) {
  const Reason needed = reason(at, since.all, begin);
  if (needed.need != Need::none) {
    if (since.written != kNone && reason(at, since.after, begin).need < needed.need) {
      keep(since);
    } else if (needed.need == Need::must) {
      mark_missing(order_->ops[at], kBefore, needed);
    }
  }
  advance(at, since);
}

/// Must the threads meet before this op? Conflicts with ops from `begin` on count.
BlockSyncs::Reason BlockSyncs::reason(uint32_t at, const Events& events, uint32_t begin) const {
  const uint32_t op = order_->ops[at];
  const uint8_t role = roles_[op];
  if ((role & kMeeting) || (marks_[op] & kBefore)) return {};
  if (events.waited != kNone && (role & (kData | kAnnounces))) {
    return {Need::must, events.waited,
            "what follows must come after this, in all threads of the block"};
  }
  if (events.worked != kNone && (role & kPublishes)) {
    return {Need::must, events.worked, "what all threads of the block did must be published here"};
  }
  if (events.posted != kNone && (role & kDrains) && !(role & kData)) {
    return {Need::must, events.posted, "this must be waited for, whichever thread posted it"};
  }
  if (events.worked != kNone && in_rounds_ && (marks_[op] & kFirstOfRound)) {
    return {Need::must, events.worked, "rounds of the pipeline touch the same bytes"};
  }
  const uint32_t after = needs_->after[op];
  if (after != kNone) {
    const uint32_t conflict = order_->position[after];
    if (conflict >= begin && conflict >= events.met) {
      return {Need::must, conflict, "both touch the same bytes, in different threads of the block"};
    }
  }
  const bool may = (events.worked != kNone && (role & kAnnounces)) ||
                   (events.published != kNone && (role & kAnnounces) && !(role & kPublishes)) ||
                   (events.waited != kNone && (role & kAwaits)) ||
                   (events.polled != kNone && (role & kData));
  return {may ? Need::may : Need::none, kNone, ""};
}

/// True for a sync of the author that nothing has needed so far.
bool BlockSyncs::is_held_back(uint32_t at) const {
  const uint32_t op = order_->ops[at];
  return (roles_[op] & kWritten) != 0 && (marks_[op] & kStays) == 0;
}

void BlockSyncs::advance(uint32_t at, Since& since) const {
  const uint32_t op = order_->ops[at];
  const uint8_t role = roles_[op];
  if (is_held_back(at)) {
    since.written = at;
    since.after = {.met = at};
    return;
  }
  if ((role & kMeeting) || (marks_[op] & kBefore)) {
    since = {.all = {.met = at}, .after = {.met = at}};
  }
  for (Events* events : {&since.all, &since.after}) {
    if (role & kData) events->worked = at;
    if (role & kPosts) events->posted = at;
    if (role & kAwaits) events->waited = at;
    if (role & kPublishes) events->published = at;
    if (info(op_at(at).kind).has(Effects::kPolls)) events->polled = at;
  }
}

void BlockSyncs::apply(Rank& rank, PassContext& context) const {
  std::vector<Op>& ops = rank.ops;
  size_t added = 0, removed = 0;
  for (size_t i = 0; i < marks_.size(); ++i) {
    added += (marks_[i] & kBefore) != 0;
    added += (marks_[i] & kBeforeLoop) != 0;
    removed += (roles_[i] & kWritten) != 0 && (marks_[i] & kStays) == 0;
  }
  context.count("syncs inserted", added);
  context.count("syncs removed", removed);
  if (added + removed == 0) return;
  std::vector<Op> out;
  out.reserve(ops.size() + added);
  uint32_t loop = kNone, after = 0;
  for (uint32_t i = 0; i < ops.size(); ++i) {
    if (ops[i].loop != loop) {
      loop = ops[i].loop;
      add_before_loop(ops, i, out);
    }
    if (i == after) {  // syncs before all parts of a group's op, which stay side by side
      after = group_run(ops, i).end;
      for (uint32_t k = i; k < after; ++k) {
        if (marks_[k] & kBefore) out.push_back(make_sync(ops[k].block, loop));
      }
    }
    if ((roles_[i] & kWritten) != 0 && (marks_[i] & kStays) == 0) {
      rank.removed.push_back({ops[i], "sync"});
    } else {
      out.push_back(ops[i]);
    }
  }
  ops.swap(out);
}

/// Syncs in front of the stretch of a pipeline's ops that begins at `i`.
void BlockSyncs::add_before_loop(const std::vector<Op>& ops, size_t i, std::vector<Op>& out) const {
  const uint32_t loop = ops[i].loop;
  for (; loop != kNone && i < ops.size() && ops[i].loop == loop; ++i) {
    if (marks_[i] & kBeforeLoop) out.push_back(make_sync(ops[i].block, kNone));
  }
}

}  // namespace mscclc::order
