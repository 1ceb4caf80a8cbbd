#include "passes/sync/order_finder.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "ir/report/op_error.h"
#include "passes/framework/group_run.h"
#include "passes/framework/op_size.h"
#include "passes/framework/passes.h"
#include "passes/sync/check_order.h"

namespace mscclc::order {

bool OrderFinder::find(uint32_t rank, RankOrder& out) {
  rank_ = rank;
  here_ = &program_.ranks[rank];
  out.inserts.clear();
  out.barriers = 0;
  out.inside.heads.clear();
  out.inside.after.assign(here_->ops.size(), kNone);
  out_ = &out;
  out.semaphores = out.missing = 0;
  edges_.start();
  meetings_.clear();
  rounds_.clear();
  conflicts_.start(rank);
  run_.start(program_, rank);
  full_at_ = kNone;
  const bool ended = run_.run([this](uint32_t op) { return visit(op); });
  if (contradiction_) return false;
  if (conflicts_.exhausted()) {
    op_error(diagnostics_, "too-many-chunks", program_, rank, here_->ops[conflicts_.exhausted_at()],
             fmt::format("up to this op, those of rank {} refer to more than {} chunks", rank,
                         Conflicts::kMaxVisits));
    return false;
  }
  if (full_at_ != kNone) {
    op_error(diagnostics_, "too-many-blocks", program_, rank, here_->ops[full_at_],
             fmt::format("up to this op, the order among the {} thread blocks of rank {} takes "
                         "more than {} MiB of memory",
                         here_->blocks, rank, BlockClocks::kMaxNumbers * sizeof(uint32_t) >> 20));
    return false;
  }
  if (!ended) {
    run_.report_stuck(diagnostics_);
    return false;
  }
  emit(out);
  return true;
}

/// Orders a data op after its conflicts; false if its block has to wait for another's pipeline.
bool OrderFinder::visit(uint32_t op) {
  if (run_.clocks.full()) {
    if (full_at_ == kNone) full_at_ = op;
    return true;
  }
  const std::span<const Conflict> conflicts = conflicts_.find(op);
  find_needs(op, conflicts);
  for (const Need& need : needs_) {
    const uint32_t count = run_.count(need.release);
    if (run_.done(need.from) >= count || reports_) continue;
    run_.stall(op, need.from, count, need.conflict);
    return false;
  }
  const bool in_parts = here_->ops[op].parts != 0 && !reports_;
  if (!needs_.empty() && in_parts && meet_group(op)) find_needs(op, conflicts);
  if (needs_.size() > 1) drop_implied_needs();
  for (const Need& need : needs_) contradiction_ |= !add_edge(op, need);
  conflicts_.record(op);
  return true;
}

/// A block whose progress another one of the needed blocks has waited for already need not be
/// waited for again.
void OrderFinder::drop_implied_needs() {
  const auto implies = [this](const Need& other, const Need& need) {
    if (other.loop != need.loop || other.from == need.from) return false;
    const uint32_t row = run_.clocks.row_at(other.from, run_.count(other.release));
    return run_.clocks.known(row, need.from) >= run_.count(need.release);
  };
  // Blocks that have met imply each other: one by one, so that one of them stays.
  for (size_t i = needs_.size(); i-- > 0;) {
    const Need need = needs_[i];
    const bool implied =
        std::ranges::any_of(needs_, [&](const Need& other) { return implies(other, need); });
    if (implied) needs_.erase(needs_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

void OrderFinder::find_needs(uint32_t op, std::span<const Conflict> conflicts) {
  needs_.clear();
  for (const Conflict& conflict : conflicts) add_conflict(op, conflict);
}

void OrderFinder::add_conflict(uint32_t op, const Conflict& conflict) {
  const Op &earlier = here_->ops[conflict.op], &later = here_->ops[op];
  const bool same_loop = earlier.loop == later.loop;
  if (same_loop && later.loop != kNone && !conflict.same_reference) {
    rounds_.push_back({later.loop, run_.loop_first(conflict.op)});
    rounds_.push_back({later.loop, run_.loop_first(op)});
  }
  if (earlier.block == later.block) {
    if (conflict.same_threads) return;
    uint32_t& after = out_->inside.after[op];
    if (after == kNone || run_.count(after) < run_.count(conflict.op)) after = conflict.op;
    return;
  }
  if (is_ordered(op, conflict)) return;
  const uint32_t release = same_loop ? conflict.op : run_.loop_last(conflict.op);
  const uint32_t acquire = same_loop ? op : run_.loop_first(op);
  const uint32_t loop = same_loop ? later.loop : kNone;
  for (Need& need : needs_) {
    if (need.from != earlier.block || need.loop != loop) continue;
    if (run_.count(need.release) < run_.count(release)) {
      need.release = release;
      need.conflict = conflict.op;
    }
    return;
  }
  needs_.push_back({earlier.block, conflict.op, release, acquire, loop});
}

/// Does the block of `op` know that the conflicting op is done, in every round it matters?
bool OrderFinder::is_ordered(uint32_t op, const Conflict& conflict) {
  const Op &earlier = here_->ops[conflict.op], &later = here_->ops[op];
  const uint32_t row = run_.clocks.row(later.block);
  const uint32_t known = run_.clocks.known(row, earlier.block);
  if (known < run_.count(conflict.op)) return false;
  if (earlier.loop == later.loop || earlier.loop == kNone || later.loop == kNone) return true;
  // Two pipelines: what is learned round by round speaks of one round of the other only, unless it
  // comes from after that pipeline.
  const Loop &a = program_.loops[earlier.loop], &b = program_.loops[later.loop];
  if (conflict.same_reference && a.unit == b.unit && a.chunks == b.chunks) return true;
  if (known > run_.count(run_.loop_last(conflict.op))) return true;
  const uint32_t entry = run_.block(later.block).entry_row;
  return run_.clocks.known(entry, earlier.block) >= run_.count(conflict.op);
}

/// If the op is a part of a group's op and needs one of the group's other blocks: all of them meet
/// before it. False if they need not or cannot.
bool OrderFinder::meet_group(uint32_t op) {
  const Op& self = here_->ops[op];
  const OpRun run = group_run(here_->ops, op);
  std::vector<uint32_t> group;
  bool needed = false;
  for (uint32_t member = run.begin; member < run.end; ++member) {
    group.push_back(member);
    for (const Need& need : needs_) needed |= need.from == here_->ops[member].block;
  }
  if (!needed) return false;
  const bool whole_loop = self.loop != kNone && std::ranges::none_of(needs_, [](const Need& need) {
                            return need.loop != kNone;
                          });
  if (whole_loop) {
    for (uint32_t& member : group) member = run_.loop_first(member);
  }
  if (!can_meet(group)) return false;
  meet(std::move(group), whole_loop);
  return true;
}

/// Can the blocks of these ops meet before them? They stand there now, or have gone on into the
/// pipeline that the op begins without knowing of each other's progress in it.
bool OrderFinder::can_meet(const std::vector<uint32_t>& ops) {
  for (const uint32_t a : ops) {
    const uint32_t block = here_->ops[a].block, before = run_.count(a) - 1;
    if (run_.done(block) == before) continue;
    if (run_.done(block) < before || run_.block(block).loop == kNone) return false;
    if (run_.loop_first(a) != a || run_.block(block).loop != here_->ops[a].loop) return false;
    for (const uint32_t b : ops) {
      const uint32_t other = here_->ops[b].block;
      if (other != block && run_.clocks.known(run_.clocks.row(other), block) > before) return false;
    }
  }
  return true;
}

void OrderFinder::meet(std::vector<uint32_t> ops, bool whole_loop) {
  uint32_t joined = 0;
  for (const uint32_t op : ops) {
    const uint32_t block = here_->ops[op].block, before = run_.count(op) - 1;
    joined = run_.clocks.join(run_.clocks.row_at(block, before), {joined, block, before});
  }
  for (const uint32_t op : ops) {
    const uint32_t b = here_->ops[op].block;
    BlockRun::Block& block = run_.block(b);
    if (run_.next_op(b) == op) run_.enter(op);
    if (whole_loop) block.entry_row = run_.clocks.join(block.entry_row, {joined, kNone, 0});
    const uint32_t row = run_.clocks.join(run_.clocks.row(b), {joined, kNone, 0});
    run_.clocks.set(b, run_.done(b) + 1, row);
  }
  meetings_.push_back({std::move(ops), whole_loop});
}

/// False after reporting that the op cannot be ordered after its conflict.
bool OrderFinder::add_edge(uint32_t op, const Need& need) {
  const uint32_t to = here_->ops[op].block, count = run_.count(need.release);
  const uint32_t row = run_.clocks.row_at(need.from, count);
  // In front of a pipeline that the block is in already: the other must not depend on it.
  if (run_.clocks.known(row, to) >= run_.count(need.acquire)) {
    report_contradiction(program_, rank_, need.conflict, op, diagnostics_);
    return false;
  }
  const Knowledge news{row, need.from, count};
  BlockRun::Block& block = run_.block(to);
  if (need.loop == kNone) block.entry_row = run_.clocks.join(block.entry_row, news);
  run_.clocks.set(to, run_.count(op), run_.clocks.join(run_.clocks.row(to), news));
  if (reports_) {
    report(need.conflict, op, "both touch the same bytes, and this one is written first");
  } else {
    edges_.add({need.from, to, need.loop, need.release, need.acquire});
  }
  return true;
}

void OrderFinder::report(uint32_t first, uint32_t second, std::string_view why) {
  report_missing_order(program_, rank_, here_->ops[first], here_->ops[second],
                       "nothing makes this op wait for one of another thread block", why,
                       diagnostics_);
  ++out_->missing;
}

/// The semaphore from one block to another in a pipeline or outside. One is enough for all edges:
/// each asks for more than those before it, so releases and acquires pair up in order.
void OrderFinder::assign_semaphores() {
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, uint32_t> of_edge;
  semaphores_.clear();
  for (const OrderEdge& edge : edges_.all()) {
    const int64_t key = static_cast<int64_t>(of_edge.size());
    const uint32_t next = static_cast<uint32_t>(here_->semaphores.size());
    const auto [found, added] = of_edge.try_emplace({edge.from, edge.to, edge.loop}, next);
    semaphores_.push_back(found->second);
    if (!added) continue;
    here_->semaphores.push_back(
        {.label = {kNone, additions_.integers.append({&key, 1})}, .initial = 0, .declared = {}});
  }
  out_->semaphores = static_cast<uint32_t>(of_edge.size());
}

void OrderFinder::emit(RankOrder& out) {
  edges_.drop_implied(*here_, run_);
  edges_.take_meetings(*here_, run_.sequence(), meetings_);
  assign_semaphores();
  emit_side(out, true);
  emit_side(out, false);
  for (const Meeting& meeting : meetings_) {
    emit_barrier(out, meeting.ops, meeting.whole_loop ? Inserts::before_loop : Inserts::before);
  }
  emit_rounds(out);
}

/// One release after an op for all that wait for it, one acquire before an op for all it waits for;
/// several where the target takes fewer semaphores an op.
void OrderFinder::emit_side(RankOrder& out, bool releases) {
  const std::vector<OrderEdge>& edges = edges_.all();
  const auto place = [&](uint32_t e) {
    return std::pair(releases ? edges[e].release : edges[e].acquire, edges[e].loop);
  };
  std::vector<uint32_t> sorted(edges.size());
  std::iota(sorted.begin(), sorted.end(), 0);
  std::ranges::stable_sort(sorted, {}, place);
  const size_t most = most_operands(limits_, OpKind::release, ChannelKind::memory);
  std::vector<Operand> operands;
  for (size_t i = 0; i < sorted.size();) {
    const auto [at, loop] = place(sorted[i]);
    operands.clear();
    for (; i < sorted.size() && place(sorted[i]) == std::pair(at, loop); ++i) {
      if (operands.size() == most) break;
      operands.push_back({.first = semaphores_[sorted[i]]});
    }
    const Op& neighbour = here_->ops[at];
    Op op{.kind = releases ? OpKind::release : OpKind::acquire,
          .block = neighbour.block,
          .loop = loop,
          .locations = neighbour.locations};
    additions_.set_operands(op, operands, {});
    if (loop != neighbour.loop) {
      out.inserts.add(releases ? loop_end(at) : loop_begin(at),
                      releases ? Inserts::after_loop : Inserts::before_loop, op);
    } else if (releases) {
      out.inserts.add(group_run(here_->ops, at).end - 1, Inserts::after, op);
    } else {
      out.inserts.add(group_run(here_->ops, at).begin, Inserts::before, op);
    }
  }
}

void OrderFinder::emit_barrier(RankOrder& out, const std::vector<uint32_t>& ops,
                               Inserts::Slot slot) {
  std::vector<Operand> blocks;
  for (const uint32_t op : ops) blocks.push_back({.first = here_->ops[op].block});
  std::ranges::sort(blocks, {}, &Operand::first);
  const Op& neighbour = here_->ops[ops[0]];
  Op barrier{.kind = OpKind::barrier,
             .loop = slot == Inserts::before_loop ? kNone : neighbour.loop,
             .locations = neighbour.locations};
  additions_.set_operands(barrier, blocks, {});
  ++out.barriers;
  for (const uint32_t op : ops) {
    barrier.block = here_->ops[op].block;
    const uint32_t at =
        slot == Inserts::before_loop ? loop_begin(op) : group_run(here_->ops, op).begin;
    out.inserts.add(at, slot, barrier);
  }
}

/// Rounds of a pipeline that touch each other's bytes: its blocks meet before each round.
void OrderFinder::emit_rounds(RankOrder& out) {
  std::ranges::sort(rounds_);
  const auto [end, last] = std::ranges::unique(rounds_);
  rounds_.erase(end, last);
  std::vector<uint32_t> heads;
  for (size_t i = 0; i < rounds_.size();) {
    const uint32_t loop = rounds_[i].first;
    heads.clear();
    for (; i < rounds_.size() && rounds_[i].first == loop; ++i) heads.push_back(rounds_[i].second);
    if (heads.size() == 1) {
      out.inside.heads.push_back(heads[0]);
    } else if (!begins_with_barrier(heads) && reports_) {
      report(heads[1], heads[0],
             "rounds of the pipeline touch the same bytes; its blocks must meet before each");
    } else if (!begins_with_barrier(heads)) {
      emit_barrier(out, heads, Inserts::head);
    }
  }
}

bool OrderFinder::begins_with_barrier(const std::vector<uint32_t>& heads) const {
  return std::ranges::all_of(heads, [&](uint32_t head) {
    const Op& op = here_->ops[head];
    if (op.kind != OpKind::barrier) return false;
    return std::ranges::all_of(heads, [&](uint32_t other) {
      return std::ranges::any_of(
          program_.dsts(op), [&](const Operand& o) { return o.first == here_->ops[other].block; });
    });
  });
}

/// First and last of the neighbouring ops of an op's pipeline, whichever blocks they are in.
uint32_t OrderFinder::loop_begin(uint32_t op) const {
  const std::vector<Op>& ops = here_->ops;
  while (op > 0 && ops[op - 1].loop == ops[op].loop) --op;
  return op;
}

uint32_t OrderFinder::loop_end(uint32_t op) const {
  const std::vector<Op>& ops = here_->ops;
  while (op + 1 < ops.size() && ops[op + 1].loop == ops[op].loop) ++op;
  return op;
}

void name_orders(Program& program) {
  NameId name = kNone;
  for (Rank& rank : program.ranks) {
    for (Semaphore& semaphore : rank.semaphores) {
      if (semaphore.label.name != kNone) continue;
      if (name == kNone) name = unused_name(program, "order");
      semaphore.label.name = name;
    }
  }
}

}  // namespace mscclc::order
