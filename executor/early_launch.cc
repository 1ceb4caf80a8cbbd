#include "executor/early_launch.h"

#include <algorithm>
#include <set>
#include <utility>

namespace mscclc {
namespace {

/// Thread blocks of all ranks have one number each.
using BlockId = uint32_t;
using BlockIds = std::set<BlockId>;

/// Who sends what a wait takes, or packets of a chunk.
struct Senders {
  BlockIds blocks;
  bool known = true;
  bool home = false;  ///< blocks of the same rank too; which ones is not said
};

bool contains(const BlockIds& all, const BlockIds& some) {
  return std::includes(all.begin(), all.end(), some.begin(), some.end());
}

/// Who writes packets to the chunks of a buffer, of which there may be billions.
class ChunkWriters {
 public:
  void add(uint32_t first, uint32_t count, BlockId block) {
    writes_.push_back({first, uint64_t{first} + count, block});
    longest_ = std::max<uint64_t>(longest_, count);
  }
  /// Comes before of().
  void settle() {
    std::sort(writes_.begin(), writes_.end());
    writes_.erase(std::unique(writes_.begin(), writes_.end()), writes_.end());
  }
  /// The writers of `count` chunks from `first` on. `single` becomes false if a chunk has several.
  Senders of(uint32_t first, uint32_t count, bool& single) const {
    const uint64_t end = uint64_t{first} + count;
    const Write least{first < longest_ ? 0 : first - longest_, 0, 0};
    Senders out;
    uint64_t covered = first;  // by writes so far ...
    BlockId last = kNone;      // ... of which this block's goes farthest
    for (auto w = std::lower_bound(writes_.begin(), writes_.end(), least);
         w != writes_.end() && w->begin < end; ++w) {
      if (w->end <= first) continue;
      out.known &= w->begin <= covered;
      single &= w->begin >= covered || last == kNone || last == w->block;
      out.blocks.insert(w->block);
      if (w->end <= covered) continue;
      covered = w->end;
      last = w->block;
    }
    out.known &= covered >= end;
    return out;
  }

 private:
  struct Write {
    uint64_t begin, end;
    BlockId block;
    auto operator<=>(const Write&) const = default;
  };
  std::vector<Write> writes_;
  uint64_t longest_ = 0;
};

/// Who waits for whom in a plan.
class Dependences {
 public:
  explicit Dependences(const Program& program);

  BlockId id(uint32_t rank, uint32_t block) const { return first_[rank] + block; }
  uint32_t rank_of(BlockId block) const;
  /// Who sends what an op of `rank` waits for. `single`: each of its packets and signals has one
  /// sender, so that having taken them shows that all these have begun.
  Senders senders(uint32_t rank, const Op& op, bool& single) const;
  /// False: packets go through a switch, and who sends which is not looked up.
  bool known() const { return known_; }
  /// For whom a block waits itself.
  const Senders& of(BlockId block) const { return needs_[block]; }

 private:
  void add_sends(uint32_t rank, const Op& op);

  const Program& program_;
  std::vector<BlockId> first_;                      // of each rank
  std::vector<std::vector<Senders>> signals_;       // by rank, channel
  std::vector<std::vector<ChunkWriters>> writers_;  // by rank, buffer
  std::vector<Senders> needs_;                      // by block
  bool known_ = true;
};

Dependences::Dependences(const Program& program) : program_(program) {
  first_.push_back(0);
  for (const Rank& rank : program.ranks) {
    first_.push_back(first_.back() + rank.blocks);
    signals_.emplace_back(rank.channels.size());
    writers_.emplace_back(rank.buffers.size());
  }
  const auto ranks = static_cast<uint32_t>(program.ranks.size());
  for (uint32_t r = 0; r < ranks; ++r) {
    for (const Op& op : program.ranks[r].ops) add_sends(r, op);
  }
  for (auto& buffers : writers_) {
    for (ChunkWriters& writers : buffers) writers.settle();
  }
  needs_.resize(first_.back());
  for (uint32_t r = 0; r < ranks; ++r) {
    for (const Op& op : program.ranks[r].ops) {
      bool single;
      Senders senders = this->senders(r, op, single);
      Senders& needs = needs_[id(r, op.block)];
      needs.blocks.merge(senders.blocks);
      needs.known &= senders.known;
      needs.home |= senders.home;
    }
  }
}

uint32_t Dependences::rank_of(BlockId block) const {
  return static_cast<uint32_t>(std::upper_bound(first_.begin(), first_.end(), block) -
                               first_.begin() - 1);
}

void Dependences::add_sends(uint32_t rank, const Op& op) {
  const BlockId block = id(rank, op.block);
  const OpInfo& row = info(op.kind);
  for (const Operand& to : program_.dsts(op)) {
    const Channel* channel =
        to.channel == kNone ? nullptr : &program_.ranks[rank].channels[to.channel];
    if (row.has(kSignals) && channel != nullptr && channel->partner != kNone) {
      signals_[channel->peer][channel->partner].blocks.insert(block);
    }
    if (!row.moves_data()) continue;
    if (channel != nullptr && channel->kind == ChannelKind::switch_) {
      known_ &= program_.buffer_of(rank, to).packets == PacketFormat::none;
      continue;
    }
    if (program_.buffer_of(rank, to).packets == PacketFormat::none) continue;
    writers_[program_.owner_of(rank, to)][to.buffer].add(to.first, to.count, block);
  }
}

Senders Dependences::senders(uint32_t rank, const Op& op, bool& single) const {
  Senders out;
  single = true;
  const auto add = [&](const Senders& some) {
    out.known &= some.known && !some.blocks.empty();
    out.blocks.insert(some.blocks.begin(), some.blocks.end());
  };
  if (op.kind == OpKind::wait) {
    for (const Operand& o : program_.dsts(op)) {
      const Senders& signallers = signals_[rank][o.channel];
      single &= signallers.blocks.size() == 1;
      add(signallers);
    }
  } else if (info(op.kind).has(kAcquires) || info(op.kind).has(kMeets)) {
    single = false;
    out.home = true;  // all of them must let the next launch begin
  } else if (info(op.kind).has(kPolls)) {
    for (const Operand& o : program_.srcs(op)) {
      if (program_.buffer_of(rank, o).packets == PacketFormat::none) continue;
      add(writers_[rank][o.buffer].of(o.first, o.count, single));
    }
  }
  return out;
}

/// Finds the blocks of other ranks that blocks of one rank depend on, directly or not.
class DependenceSearch {
 public:
  DependenceSearch(const Program& program, const Dependences& dependences)
      : program_(program), dependences_(dependences), ranks_(program.ranks.size()) {}

  /// False: not known.
  bool run(uint32_t rank, BlockIds& others) {
    add_rank(rank);
    while (!ahead_.empty()) {
      const BlockId block = ahead_.back();
      ahead_.pop_back();
      const Senders& needs = dependences_.of(block);
      if (!needs.known) return false;
      if (needs.home) add_rank(dependences_.rank_of(block));
      for (const BlockId next : needs.blocks) add(next);
    }
    for (const BlockId block : seen_) {
      if (dependences_.rank_of(block) != rank) others.insert(block);
    }
    return true;
  }

 private:
  void add(BlockId block) {
    if (seen_.insert(block).second) ahead_.push_back(block);
  }
  void add_rank(uint32_t rank) {
    if (ranks_[rank]) return;
    ranks_[rank] = true;
    for (uint32_t b = 0; b < program_.ranks[rank].blocks; ++b) add(dependences_.id(rank, b));
  }

  const Program& program_;
  const Dependences& dependences_;
  BlockIds seen_;
  std::vector<bool> ranks_;  // whose blocks have all been added
  std::vector<BlockId> ahead_;
};

/// Goes over the ops of a block and finds where it has heard from all that it waits for itself.
class BlockMarker {
 public:
  BlockMarker(const Program& program, uint32_t rank, const Dependences& dependences)
      : program_(program), rank_(rank), dependences_(dependences) {}

  /// Marks among the block's `count` ops from `ops` on; false: there is no such place.
  bool mark(uint32_t block, device::DeviceOp* ops, uint32_t count);

 private:
  BlockIds from_others(const BlockIds& blocks) const;

  const Program& program_;
  const uint32_t rank_;
  const Dependences& dependences_;
};

BlockIds BlockMarker::from_others(const BlockIds& blocks) const {
  BlockIds others;
  for (const BlockId b : blocks) {
    if (dependences_.rank_of(b) != rank_) others.insert(b);
  }
  return others;
}

bool BlockMarker::mark(uint32_t block, device::DeviceOp* ops, uint32_t count) {
  const BlockIds needs = from_others(dependences_.of(dependences_.id(rank_, block)).blocks);
  if (needs.empty()) {
    const uint32_t first = count > 0 && ops[0].kind == OpKind::pipeline ? 1 : 0;
    if (first < count) ops[first].flags |= device::kFreesNext;
    return true;
  }
  // What is known: by all threads, since the block met; by the first one, which has a part in each
  // op that polls; and by some.
  BlockIds by_all, by_first, by_some;
  for (device::DeviceOp* op = ops; op < ops + count; ++op) {
    if (op->kind == OpKind::pipeline) {
      op += op->count;  // may run no round
      continue;
    }
    const Op& source = program_.ranks[rank_].ops[op->source];
    if (info(source.kind).has(kSyncs)) {
      by_all.merge(by_some);
      by_first.insert(by_all.begin(), by_all.end());
    }
    bool single;
    const Senders senders = dependences_.senders(rank_, source, single);
    if (single) {
      by_some.insert(senders.blocks.begin(), senders.blocks.end());
      if (info(source.kind).has(kPolls)) {
        by_first.insert(senders.blocks.begin(), senders.blocks.end());
        op->flags |= device::kShowsPeers;
      }
    }
    if (!contains(by_first, needs)) continue;
    op->flags |= device::kFreesNext;
    return true;
  }
  return false;
}

}  // namespace

void mark_early_launch(const Program& program, uint32_t rank, RankProgram& lowered) {
  const Dependences dependences(program);
  const uint32_t blocks = program.ranks[rank].blocks;
  BlockIds needed, heard;
  if (!dependences.known() || !DependenceSearch(program, dependences).run(rank, needed)) return;
  for (uint32_t b = 0; b < blocks; ++b) {
    const BlockIds& own = dependences.of(dependences.id(rank, b)).blocks;
    heard.insert(own.begin(), own.end());
  }
  if (!contains(heard, needed)) return;
  BlockMarker marker(program, rank, dependences);
  for (uint32_t b = 0; b < blocks; ++b) {
    const uint32_t begin = lowered.block_begin[b];
    marker.mark(b, lowered.ops.data() + begin, lowered.block_begin[b + 1] - begin);
  }
}

}  // namespace mscclc
