#include "executor/early_launch.h"

#include <algorithm>
#include <set>
#include <span>

#include "ir/support/precondition.h"

namespace mscclc {
namespace {

/// Thread blocks of all ranks have one number each.
using BlockId = uint32_t;
using BlockIds = std::set<BlockId>;

/// The senders of what an op, or a block, waits for.
struct Senders {
  BlockIds blocks;
  bool known = true;   ///< all that is waited for has a sender among them
  bool single = true;  ///< and no more than one: having taken it shows that these have begun
  bool home = false;   ///< blocks of the same rank too; which ones is not said
  /// No operand has several: of one that lies in one piece a thread may poll but the first chunk.
  bool one_each = true;

  void add(const Senders& more) {
    blocks.insert(more.blocks.begin(), more.blocks.end());
    known &= more.known;
    single &= more.single;
    home |= more.home;
    one_each &= more.one_each;
  }
};

bool contains(const BlockIds& all, const BlockIds& some) {
  return std::includes(all.begin(), all.end(), some.begin(), some.end());
}

/// The writers of packets to the chunks of a buffer, of which there may be billions.
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
  /// The writers of `count` chunks from `first` on.
  Senders of(uint32_t first, uint32_t count) const {
    const uint64_t end = uint64_t{first} + count;
    const Write least{first < longest_ ? 0 : first - longest_, 0, 0};
    Senders out;
    uint64_t covered = first;  // by writes so far ...
    BlockId last = kNone;      // ... of which this block's goes farthest
    for (auto w = std::lower_bound(writes_.begin(), writes_.end(), least);
         w != writes_.end() && w->begin < end; ++w) {
      if (w->end <= first) continue;
      out.known &= w->begin <= covered;
      out.single &= w->begin >= covered || last == kNone || last == w->block;
      out.blocks.insert(w->block);
      if (w->end <= covered) continue;
      covered = w->end;
      last = w->block;
    }
    out.known &= covered >= end && !out.blocks.empty();
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

/// Which block waits for which in a plan.
class Dependences {
 public:
  explicit Dependences(const Program& program);

  BlockId id(uint32_t rank, uint32_t block) const { return first_[rank] + block; }
  uint32_t rank_of(BlockId block) const;
  /// Those of some blocks that are not of `rank`.
  BlockIds elsewhere(uint32_t rank, const BlockIds& blocks) const;
  /// The senders of what an op of `rank` waits for.
  Senders senders(uint32_t rank, const Op& op) const;
  /// False: packets go through a switch, and the sender of each is not looked up.
  bool known() const { return known_; }
  /// The senders that a block waits for itself.
  const Senders& of(BlockId block) const { return needs_[block]; }

 private:
  void add_sends(uint32_t rank, const Op& op);
  static Senders writers_of(const ChunkWriters& writers, const Op& op, const Operand& o);

  const Program& program_;
  std::vector<BlockId> first_;                      // of each rank
  std::vector<std::vector<BlockIds>> signallers_;   // by rank, channel
  std::vector<std::vector<ChunkWriters>> writers_;  // by rank, buffer
  std::vector<Senders> needs_;                      // by block
  bool known_ = true;
};

Dependences::Dependences(const Program& program) : program_(program) {
  first_.push_back(0);
  for (const Rank& rank : program.ranks) {
    first_.push_back(first_.back() + rank.blocks);
    signallers_.emplace_back(rank.channels.size());
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
    for (const Op& op : program.ranks[r].ops) needs_[id(r, op.block)].add(senders(r, op));
  }
}

uint32_t Dependences::rank_of(BlockId block) const {
  return static_cast<uint32_t>(std::upper_bound(first_.begin(), first_.end(), block) -
                               first_.begin() - 1);
}

BlockIds Dependences::elsewhere(uint32_t rank, const BlockIds& blocks) const {
  BlockIds out;
  for (const BlockId block : blocks) {
    if (rank_of(block) != rank) out.insert(block);
  }
  return out;
}

void Dependences::add_sends(uint32_t rank, const Op& op) {
  const BlockId block = id(rank, op.block);
  const OpInfo& row = info(op.kind);
  for (const Operand& to : program_.dsts(op)) {
    const Channel* channel =
        to.channel == kNone ? nullptr : &program_.ranks[rank].channels[to.channel];
    if (row.has(kSignals) && channel != nullptr && channel->partner != kNone) {
      signallers_[channel->peer][channel->partner].insert(block);
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

Senders Dependences::senders(uint32_t rank, const Op& op) const {
  Senders out;
  if (op.kind == OpKind::wait) {
    for (const Operand& o : program_.dsts(op)) {
      const BlockIds& blocks = signallers_[rank][o.channel];
      // Where there are credits it may take a signal of an earlier call.
      const bool of_this_call = program_.ranks[rank].channels[o.channel].credits == 0;
      out.add({.blocks = blocks,
               .known = !blocks.empty(),
               .single = blocks.size() == 1 && of_this_call});
    }
  } else if (info(op.kind).has(kAwaitsFlags)) {
    out.known = false;  // what raises them may itself wait for room
  } else if (info(op.kind).has(kAcquires) || info(op.kind).has(kMeets)) {
    out.single = false;
    out.home = true;  // all of them must let the next launch begin
  } else if (info(op.kind).has(kPolls)) {
    for (const Operand& o : program_.srcs(op)) {
      if (program_.buffer_of(rank, o).packets == PacketFormat::none) continue;
      Senders all = writers_of(writers_[rank][o.buffer], op, o);
      all.one_each = all.blocks.size() == 1;
      out.add(all);
    }
  }
  return out;
}

/// Who sends what the op's part has of an operand. Where chunks are not dealt out evenly, a part
/// has some of them, and which depends on the size of the message.
Senders Dependences::writers_of(const ChunkWriters& writers, const Op& op, const Operand& o) {
  if (op.parts > 1 && o.count % op.parts == 0) {
    const uint32_t each = o.count / op.parts;
    return writers.of(o.first + op.part * each, each);
  }
  Senders all = writers.of(o.first, o.count);
  all.single &= op.parts <= 1 || all.blocks.size() == 1;
  return all;
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
    others = dependences_.elsewhere(rank, seen_);
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

/// Marks, among the ops of a block, where it has heard from all that it waits for itself.
void mark_block(const Program& program, const Dependences& dependences, uint32_t rank,
                uint32_t block, std::span<device::DeviceOp> ops) {
  const BlockIds needs =
      dependences.elsewhere(rank, dependences.of(dependences.id(rank, block)).blocks);
  if (needs.empty()) {
    const uint32_t first = !ops.empty() && ops[0].kind == device::StepKind::pipeline ? 1 : 0;
    if (first < ops.size()) ops[first].flags |= device::kFreesNext;
    return;
  }
  // What is known: by all threads, since the block met; by the first one, which has a part in each
  // op that polls, if only of its first chunk; and by some.
  BlockIds by_all, by_first, by_some;
  for (size_t i = 0; i < ops.size(); ++i) {
    device::DeviceOp& op = ops[i];
    if (op.kind == device::StepKind::pipeline) {
      i += op.count;  // may run no round
      continue;
    }
    const Op& source = program.ranks[rank].ops[op.source];
    if (info(source.kind).has(kSyncs)) {
      by_all.merge(by_some);
      by_first.insert(by_all.begin(), by_all.end());
    }
    const Senders senders = dependences.senders(rank, source);
    if (senders.single) {
      by_some.insert(senders.blocks.begin(), senders.blocks.end());
      if (info(source.kind).has(kPolls)) {
        if (senders.one_each) by_first.insert(senders.blocks.begin(), senders.blocks.end());
        op.flags |= device::kShowsPeers;
      }
    }
    if (!contains(by_first, needs)) continue;
    op.flags |= device::kFreesNext;
    return;
  }
}

}  // namespace

void mark_early_launch(const Program& program, uint32_t rank, RankProgram& lowered) {
  precondition(rank < program.ranks.size());
  const Dependences dependences(program);
  const uint32_t blocks = program.ranks[rank].blocks;
  BlockIds needed, heard;
  if (!dependences.known() || !DependenceSearch(program, dependences).run(rank, needed)) return;
  for (uint32_t b = 0; b < blocks; ++b) {
    const BlockIds& own = dependences.of(dependences.id(rank, b)).blocks;
    heard.insert(own.begin(), own.end());
  }
  if (!contains(heard, needed)) return;
  for (uint32_t b = 0; b < blocks; ++b) {
    const uint32_t begin = lowered.block_begin[b], end = lowered.block_begin[b + 1];
    mark_block(program, dependences, rank, b, {lowered.ops.data() + begin, end - begin});
  }
}

}  // namespace mscclc
