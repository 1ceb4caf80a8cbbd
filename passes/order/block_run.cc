#include "passes/order/block_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/report/op_error.h"
#include "passes/framework/passes.h"

namespace mscclc::order {

void report_contradiction(const Program& program, uint32_t rank, uint32_t first, uint32_t second,
                          Diagnostics& diagnostics) {
  const std::vector<Op>& ops = program.ranks[rank].ops;
  Diagnostic& d = diagnostics.error(
      "order-contradiction", span_of(program, ops[second]),
      fmt::format("{} must follow {}, which the semaphores and barriers make impossible",
                  describe_op(program, rank, ops[second]), describe_op(program, rank, ops[first])));
  d.notes.push_back(
      {"both touch the same bytes; this one is written first", span_of(program, ops[first])});
}

void BlockRun::start(const Program& program, uint32_t rank) {
  program_ = &program;
  rank_ = &program.ranks[rank];
  rank_id_ = rank;
  blocks_.assign(rank_->blocks, {});
  clocks.start(rank_->blocks);
  barriers_.clear();
  ready_.clear();
  waiting_.clear();
  order_.sort(*rank_);
  for (uint32_t b = 0; b < rank_->blocks; ++b) blocks_[b].next = order_.begin[b];
  read_semaphores();
}

void BlockRun::read_semaphores() {
  semaphores_.assign(rank_->semaphores.size(), {});
  released_.clear();
  if (semaphores_.empty()) return;
  for (size_t s = 0; s < semaphores_.size(); ++s) {
    semaphores_[s].value = semaphores_[s].initial = rank_->semaphores[s].initial;
  }
  for (const Op& op : rank_->ops) {
    const OpInfo& row = info(op.kind);
    if (!row.has(kReleases) && !row.has(kAcquires)) continue;
    for (const Operand& o : program_->dsts(op)) {
      Semaphore& s = semaphores_[o.first];
      (row.has(kReleases) ? s.releaser : s.acquirer).add(op.block);
      s.in_rounds |= op.loop != kNone;
      if (!row.has(kReleases)) continue;
      ++s.releaser_of(op.block).releases;
      ++s.releases;
    }
  }
  for (Semaphore& s : semaphores_) {
    if (!s.releaser.several() || s.acquirer.several() || s.in_rounds) s.releasers.clear();
  }
}

BlockRun::Releaser& BlockRun::Semaphore::releaser_of(uint32_t block) {
  const auto found = std::ranges::find(releasers, block, &Releaser::block);
  return found != releasers.end() ? *found : releasers.emplace_back(Releaser{block, 0, {}});
}

uint32_t BlockRun::loop_first(uint32_t op) const {
  const uint32_t loop = rank_->ops[op].loop, begin = order_.begin[block_of(op)];
  uint32_t at = order_.position[op];
  if (loop == kNone) return op;
  while (at > begin && rank_->ops[order_.ops[at - 1]].loop == loop) --at;
  return order_.ops[at];
}

uint32_t BlockRun::loop_last(uint32_t op) const {
  const uint32_t loop = rank_->ops[op].loop, end = order_.begin[block_of(op) + 1];
  uint32_t at = order_.position[op];
  if (loop == kNone) return op;
  while (at + 1 < end && rank_->ops[order_.ops[at + 1]].loop == loop) ++at;
  return order_.ops[at];
}

void BlockRun::enter(uint32_t op) {
  const uint32_t loop = rank_->ops[op].loop;
  Block& block = blocks_[block_of(op)];
  if (loop == block.loop) return;
  block.loop = loop;
  block.entry = order_.position[op];
  block.entry_row = clocks.row(block_of(op));
}

bool BlockRun::do_control(uint32_t op) {
  const OpInfo& row = info(rank_->ops[op].kind);
  if (row.has(kAcquires)) return acquire(op);
  if (row.has(kReleases)) release(op);
  if (row.has(kMeets)) return arrive(op);
  return true;
}

bool BlockRun::acquire(uint32_t op) {
  const std::span<const Operand> operands = program_->dsts(rank_->ops[op]);
  const uint32_t b = block_of(op);
  Block& block = blocks_[b];
  while (block.operand < operands.size()) {
    Semaphore& s = semaphores_[operands[block.operand].first];
    if (s.value == 0) {
      block.stalled = true;
      block.waiter = s.waiter;
      s.waiter = b;
      return false;
    }
    --s.value;
    ++block.operand;
    ++s.taken;
    if (!s.releasers.empty()) learn_certain(op, s);
    const bool paired = s.releaser.one() && s.acquirer.one();
    if (s.taken <= s.initial || !paired) continue;
    clocks.set(b, count(op), clocks.join(clocks.row(b), released_[s.oldest].knowledge));
    s.oldest = released_[s.oldest].next;
  }
  block.operand = 0;
  return true;
}

void BlockRun::learn_certain(uint32_t op, const Semaphore& s) {
  const uint32_t b = block_of(op);
  for (const Releaser& releaser : s.releasers) {
    const uint64_t certain = certain_gives(s.taken, s.initial, s.releases, releaser.releases);
    if (certain == 0 || certain > releaser.published.size()) continue;  // the counts do not balance
    clocks.set(b, count(op), clocks.join(clocks.row(b), releaser.published[certain - 1]));
  }
}

void BlockRun::release(uint32_t op) {
  const uint32_t b = block_of(op);
  for (const Operand& o : program_->dsts(rank_->ops[op])) {
    Semaphore& s = semaphores_[o.first];
    ++s.value;
    if (!s.releasers.empty()) s.releaser_of(b).published.push_back({clocks.row(b), b, count(op)});
    const uint32_t entry = static_cast<uint32_t>(released_.size());
    released_.push_back({{clocks.row(b), b, count(op)}, kNone});
    (s.oldest == kNone ? s.oldest : released_[s.newest].next) = entry;
    s.newest = entry;
    for (uint32_t waiter = s.waiter; waiter != kNone;) {
      const uint32_t next = blocks_[waiter].waiter;
      wake(waiter);
      waiter = next;
    }
    s.waiter = kNone;
  }
}

BlockRun::Barrier& BlockRun::barrier_of(const Op& op) {
  for (Barrier& barrier : barriers_) {
    if (barrier.operands == op.operands) return barrier;
  }
  std::vector<uint32_t> blocks;
  for (const Operand& o : program_->dsts(op)) blocks.push_back(o.first);
  std::sort(blocks.begin(), blocks.end());
  for (Barrier& barrier : barriers_) {
    if (barrier.blocks == blocks) return barrier;
  }
  return barriers_.emplace_back(
      Barrier{.blocks = std::move(blocks), .operands = op.operands, .arrived = {}});
}

bool BlockRun::arrive(uint32_t op) {
  const uint32_t b = block_of(op);
  Barrier& barrier = barrier_of(rank_->ops[op]);
  barrier.row = clocks.join(clocks.row(b), {barrier.row, b, count(op)});
  barrier.arrived.push_back(b);
  blocks_[b].stalled = true;
  if (barrier.arrived.size() < barrier.blocks.size()) return false;
  const std::vector<uint32_t> arrived = std::move(barrier.arrived);
  const uint32_t row = barrier.row;
  barrier.arrived.clear();
  barrier.row = 0;
  for (const uint32_t member : arrived) {
    clocks.set(member, done(member) + 1, row);
    finish(member);
    wake(member);
  }
  return true;
}

void BlockRun::finish(uint32_t b) {
  ++blocks_[b].next;
  for (size_t k = waiting_.size(); k-- > 0;) {
    const Block& waiter = blocks_[waiting_[k]];
    if (waiter.after != b || done(b) < waiter.after_count) continue;
    wake(waiting_[k]);
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(k));
  }
}

void BlockRun::wake(uint32_t b) {
  blocks_[b].stalled = false;
  blocks_[b].after = kNone;
  ready_.push_back(b);
}

void BlockRun::stall(uint32_t op, uint32_t block, uint32_t count, uint32_t because) {
  Block& own = blocks_[block_of(op)];
  own.stalled = true;
  own.after = block;
  own.after_count = count;
  own.because = because;
  waiting_.push_back(block_of(op));
}

void BlockRun::report_stuck(Diagnostics& diagnostics) const {
  const std::vector<Op>& ops = rank_->ops;
  const auto name = [&](uint32_t op) { return describe_op(*program_, rank_id_, ops[op]); };
  for (uint32_t b = 0; b < blocks_.size(); ++b) {  // written order against the author's
    const uint32_t op = next_op(b);
    if (op == kNone || blocks_[b].after == kNone) continue;
    report_contradiction(*program_, rank_id_, blocks_[b].because, op, diagnostics);
    return;
  }
  for (uint32_t b = 0; b < blocks_.size(); ++b) {
    const uint32_t op = next_op(b);
    if (op == kNone) continue;
    diagnostics.error("stuck", span_of(*program_, ops[op]),
                      fmt::format("{} waits forever", name(op)));
    return;
  }
}

}  // namespace mscclc::order
