#include "passes/fuse/reorder/fuse_edges.h"

#include <algorithm>

namespace mscclc::fusion {
namespace {

/// Beyond that, a table of who knows what of whom is too large: all counts as unknown.
constexpr uint32_t kMaxPlaces = 1024;

}  // namespace

bool Edges::possible(const Program& program, const Rank& rank) {
  if (!program.launch.auto_sync) return false;
  return std::ranges::any_of(rank.ops, [&](const Op& op) {
    return op.block != rank.ops[0].block || op.group != rank.ops[0].group;
  });
}

void Edges::start(uint32_t rank, const Touches* touches, const Places& places) {
  rank_ = &program_.ranks[rank];
  touches_ = touches;
  places_ = &places;
  edges_.clear();
  if (touches == nullptr) return;
  const uint32_t ops = static_cast<uint32_t>(rank_->ops.size());
  edges_.assign(ops, kNoEdge);
  cells_.assign(touches->cells(), {});
  readers_.clear();
  releases_.clear();
  barriers_.clear();
  width_ = std::min(places.count() + 1, kMaxPlaces);
  known_.assign(size_t{width_} * width_, kNoOp);
  read_semaphores();
  for (Number op = 1; op <= ops; ++op) visit(op);
}

/// What releases and what acquires each semaphore: with one of each the k-th pairs with the k-th.
void Edges::read_semaphores() {
  semaphores_.assign(rank_->semaphores.size(), {});
  for (size_t s = 0; s < semaphores_.size(); ++s) {
    semaphores_[s].acquired = -int64_t{rank_->semaphores[s].initial};
  }
  for (Number n = 1; n <= rank_->ops.size(); ++n) {
    const Op& op = rank_->ops[n - 1];
    const bool releases = op.kind == OpKind::release;
    if (!releases && op.kind != OpKind::acquire) continue;
    for (const Operand& o : program_.dsts(op)) {
      Semaphore& semaphore = semaphores_[o.first];
      (releases ? semaphore.releaser : semaphore.acquirer).add(place(n));
    }
  }
}

void Edges::visit(Number op) {
  switch (rank_->ops[op - 1].kind) {
    case OpKind::release:
      return release(op);
    case OpKind::acquire:
      return acquire(op);
    case OpKind::barrier:
      return arrive(op);
    default:
      return visit_data(op);
  }
}

void Edges::visit_data(Number op) {
  for (const Touch& touch : touches_->of(op)) {
    const Use& use = touches_->use(touch.use);
    if (!use.memory || use.empties) continue;  // packets say themselves when they may be taken
    Cell& cell = cells_[touch.cell];
    if (cell.writer != kNoOp && !(use.packets && cell.packets)) follow(op, cell.writer);
    if (!use.write) {
      readers_.push_back({op, use.packets, cell.readers});
      cell.readers = static_cast<uint32_t>(readers_.size() - 1);
      continue;
    }
    for (uint32_t r = cell.readers; r != kNone; r = readers_[r].next) {
      if (!(use.packets && readers_[r].packets)) follow(op, readers_[r].op);
    }
    cell = {op, use.packets, kNone};
  }
}

/// The op must come after an earlier one.
void Edges::follow(Number op, Number earlier) {
  const uint32_t here = place(op), there = place(earlier);
  if (here == there || known(here, there) >= earlier) return;
  edges_[op - 1] |= kWaitsForOthers;
  edges_[earlier - 1] |= kOthersWait;
  learn(here, there, earlier);  // what comes after this op need not wait again
}

void Edges::release(Number op) {
  for (const Operand& o : program_.dsts(rank_->ops[op - 1])) {
    Semaphore& semaphore = semaphores_[o.first];
    const uint32_t added = static_cast<uint32_t>(releases_.size());
    releases_.push_back({op, rank_->ops[op - 1].loop, kNone});
    (semaphore.last == kNone ? semaphore.first : releases_[semaphore.last].next) = added;
    semaphore.last = added;
  }
}

void Edges::acquire(Number op) {
  for (const Operand& o : program_.dsts(rank_->ops[op - 1])) {
    Semaphore& semaphore = semaphores_[o.first];
    ++semaphore.acquired;
    while (semaphore.paired < semaphore.acquired) {  // to the release that this acquire takes
      const uint32_t next =
          semaphore.paired == 0 ? semaphore.first : releases_[semaphore.pair].next;
      if (next == kNone) break;
      semaphore.pair = next;
      ++semaphore.paired;
    }
    if (semaphore.acquired < 1 || semaphore.paired != semaphore.acquired) continue;
    const Release& release = releases_[semaphore.pair];
    const bool one_to_one = !semaphore.releaser.several() && !semaphore.acquirer.several();
    if (one_to_one && release.loop == rank_->ops[op - 1].loop) {
      learn(place(op), semaphore.releaser.who(), release.op);
    }
  }
}

/// A block comes to a barrier for the k-th time: the others have done, or will have done, what they
/// do before they come to it for the k-th time. An op without a place stands for all blocks.
void Edges::arrive(Number op) {
  const Op& here = rank_->ops[op - 1];
  Barrier& barrier = barrier_of(op);
  const std::span<const Operand> blocks = program_.dsts(here);
  for (size_t b = 0; b < blocks.size(); ++b) {
    if (here.block != kNone && here.block != blocks[b].first) continue;
    const size_t k = barrier.arrivals[b].size();
    barrier.arrivals[b].push_back(op);
    for (size_t a = 0; a < blocks.size(); ++a) {
      if (a == b || barrier.arrivals[a].size() <= k) continue;
      const Number other = barrier.arrivals[a][k];
      if (rank_->ops[other - 1].loop != here.loop) continue;
      learn(blocks[b].first, blocks[a].first, other);
      learn(blocks[a].first, blocks[b].first, op);
    }
  }
}

Edges::Barrier& Edges::barrier_of(Number op) {
  const auto blocks = [this](Number n) { return program_.dsts(rank_->ops[n - 1]); };
  for (Barrier& barrier : barriers_) {
    if (std::ranges::equal(blocks(barrier.any), blocks(op))) return barrier;
  }
  barriers_.push_back({op, {}});
  barriers_.back().arrivals.resize(blocks(op).size());
  return barriers_.back();
}

uint32_t Edges::place(Number op) const {
  const uint32_t place = places_->of(op);
  return place == kNone ? places_->count() : place;
}

void Edges::learn(uint32_t place, uint32_t other, Number op) {
  if (place >= width_ || other >= width_) return;
  Number& last = known_[size_t{place} * width_ + other];
  last = std::max(last, op);
}

Number Edges::known(uint32_t place, uint32_t other) const {
  if (place >= width_ || other >= width_) return kNoOp;
  return known_[size_t{place} * width_ + other];
}

}  // namespace mscclc::fusion
