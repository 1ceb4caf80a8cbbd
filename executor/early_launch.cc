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
};

bool contains(const BlockIds& all, const BlockIds& some) {
  return std::includes(all.begin(), all.end(), some.begin(), some.end());
}

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
  std::vector<BlockId> first_;                             // of each rank
  std::vector<std::vector<Senders>> signals_;              // by rank, channel
  std::vector<std::vector<std::vector<Senders>>> chunks_;  // by rank, buffer, chunk
  std::vector<Senders> needs_;                             // by block
  bool known_ = true;
};

Dependences::Dependences(const Program& program) : program_(program) {
  first_.push_back(0);
  for (const Rank& rank : program.ranks) {
    first_.push_back(first_.back() + rank.blocks);
    signals_.emplace_back(rank.channels.size());
    auto& buffers = chunks_.emplace_back(rank.buffers.size());
    for (size_t b = 0; b < buffers.size(); ++b) {
      if (rank.buffers[b].packets != PacketFormat::none) buffers[b].resize(rank.buffers[b].chunks);
    }
  }
  const auto ranks = static_cast<uint32_t>(program.ranks.size());
  for (uint32_t r = 0; r < ranks; ++r) {
    for (const Op& op : program.ranks[r].ops) add_sends(r, op);
  }
  needs_.resize(first_.back());
  for (uint32_t r = 0; r < ranks; ++r) {
    for (const Op& op : program.ranks[r].ops) {
      bool single;
      Senders senders = this->senders(r, op, single);
      Senders& needs = needs_[id(r, op.block)];
      needs.blocks.merge(senders.blocks);
      needs.known &= senders.known;
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
    auto& chunks = chunks_[program_.owner_of(rank, to)][to.buffer];
    if (chunks.empty()) continue;
    for (uint32_t c = to.first; c < to.first + to.count; ++c) chunks[c].blocks.insert(block);
  }
}

Senders Dependences::senders(uint32_t rank, const Op& op, bool& single) const {
  Senders out;
  single = true;
  const auto add = [&](const Senders& some) {
    out.known &= !some.blocks.empty();
    single &= some.blocks.size() == 1;
    out.blocks.insert(some.blocks.begin(), some.blocks.end());
  };
  if (op.kind == OpKind::wait) {
    for (const Operand& o : program_.dsts(op)) add(signals_[rank][o.channel]);
  } else if (info(op.kind).has(kAcquires) || info(op.kind).has(kMeets)) {
    // Blocks of this rank. Which ones does not matter: all must let the next launch begin.
    single = false;
    for (uint32_t b = 0; b < program_.ranks[rank].blocks; ++b) out.blocks.insert(id(rank, b));
  } else if (info(op.kind).has(kPolls)) {
    for (const Operand& o : program_.srcs(op)) {
      const Buffer& buffer = program_.buffer_of(rank, o);
      if (buffer.packets == PacketFormat::none) continue;
      for (uint32_t c = o.first; c < o.first + o.count; ++c) add(chunks_[rank][o.buffer][c]);
    }
  }
  return out;
}

/// The blocks of other ranks that blocks of `rank` depend on, directly or not. False: not known.
bool depended_on(const Dependences& dependences, uint32_t rank, uint32_t blocks, BlockIds& others) {
  BlockIds seen;
  std::vector<BlockId> ahead;
  for (uint32_t b = 0; b < blocks; ++b) ahead.push_back(dependences.id(rank, b));
  seen.insert(ahead.begin(), ahead.end());
  while (!ahead.empty()) {
    const Senders& needs = dependences.of(ahead.back());
    ahead.pop_back();
    if (!needs.known) return false;
    for (const BlockId next : needs.blocks) {
      if (seen.insert(next).second) ahead.push_back(next);
    }
  }
  for (const BlockId block : seen) {
    if (dependences.rank_of(block) != rank) others.insert(block);
  }
  return true;
}

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
  if (!dependences.known() || !depended_on(dependences, rank, blocks, needed)) return;
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
