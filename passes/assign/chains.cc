#include "passes/assign/chains.h"

#include <algorithm>

#include "passes/assign/chain_cells.h"
#include "passes/assign/chain_run.h"
#include "passes/assign/chain_sets.h"
#include "passes/assign/stages.h"
#include "passes/framework/passes.h"

namespace mscclc::assign {
namespace {

constexpr uint64_t kMaxPairs = uint64_t{1} << 24;  ///< of touches of one cell, in all

bool is_placed(const Op& op) { return op.block != kNone || op.group != kNone; }

/// True if nothing says where ops go and only channels and data order them.
bool names_no_place(const Program& program) {
  for (const Rank& rank : program.ranks) {
    if (rank.blocks > 0) return false;
    for (const Op& op : rank.ops) {
      const OpInfo& row = info(op.kind);
      if (is_placed(op) || row.has(kReleases) || row.has(kAcquires) || row.has(kSyncs) ||
          row.has_flags())
        return false;
    }
  }
  return true;
}

/// Packets protect their slots by what ends a call; signals do by what stands before them. How the
/// two go together is not looked into.
bool mixes_packets_with_signals(const Program& program) {
  bool packets = false, signals = false;
  for (const Rank& rank : program.ranks) {
    for (const Op& op : rank.ops) {
      const OpInfo& row = info(op.kind);
      packets |= row.cost == CostClass::kPacket;
      signals |= row.has(kSignals) || row.has(kWaits);
    }
  }
  return packets && signals;
}

class ChainFinder {
 public:
  ChainFinder(const Program& program, const ChainCells& cells)
      : program_(program), cells_(cells), parts_(nodes(program, cells)), stages_(program) {}

  void find(Chains& chains) {
    for (uint32_t r = 0; r < program_.ranks.size(); ++r) {
      stages_.find(r);
      find_used_in_loop(r);
      tie_channels(r);
      tie_whole_loops(r);
      tie_waits(r);
      tie_signals(r);
      tie_packets(r);
      tie_chunks(r);
      tie_talk(r);
      number(r, chains);
    }
  }

 private:
  /// Ops, then two nodes for each channel end: its sending and its waiting side.
  static uint32_t nodes(const Program& program, const ChainCells& cells) {
    size_t ends = 0;
    for (const Rank& rank : program.ranks) ends = std::max(ends, rank.channels.size());
    return cells.ops() + static_cast<uint32_t>(2 * ends * program.ranks.size());
  }

  const std::vector<Op>& ops(uint32_t r) const { return program_.ranks[r].ops; }
  uint32_t node(uint32_t r, uint32_t op) const { return cells_.first_op(r) + op; }
  uint32_t side(uint32_t channel, bool waiting) {
    return channel_nodes_ + 2 * channel + (waiting ? 1 : 0);
  }

  void find_used_in_loop(uint32_t r) {
    const size_t ends = program_.ranks[r].channels.size();
    in_loop_.assign(ends, false);
    channel_nodes_ = r == 0 ? cells_.ops() : channel_nodes_ + 2 * last_ends_;
    last_ends_ = static_cast<uint32_t>(ends);
    for (const Op& op : ops(r)) {
      if (op.loop == kNone) continue;
      for (const Operand& o : program_.dsts(op)) {
        if (o.channel != kNone) in_loop_[o.channel] = true;
      }
    }
  }

  /// Each side of a channel serves one block. Outside pipelines both sides of one are a
  /// conversation, and what reads or writes through it belongs to it.
  void tie_channels(uint32_t r) {
    for (uint32_t i = 0; i < ops(r).size(); ++i) {
      const Op& op = ops(r)[i];
      const OpInfo& row = info(op.kind);
      if (row.cost == CostClass::kPacket && channel_kind(program_, r, op) != ChannelKind::port) {
        continue;
      }
      for (const Operand& o : program_.dsts(op)) tie_channel(r, i, o, row.has(kWaits));
      for (const Operand& o : program_.srcs(op)) {
        if (o.channel != kNone && !in_loop_[o.channel]) tie_channel(r, i, o, true);
      }
    }
  }

  void tie_channel(uint32_t r, uint32_t op, const Operand& o, bool waiting) {
    if (o.channel == kNone) return;
    if (program_.ranks[r].channels[o.channel].kind == ChannelKind::switch_) return;
    parts_.unite(node(r, op), side(o.channel, waiting && in_loop_[o.channel]));
  }

  /// A pipeline whose rounds may share bytes stays whole.
  void tie_whole_loops(uint32_t r) {
    for (uint32_t i = 0, first = kNone; i < ops(r).size(); ++i) {
      const uint32_t loop = ops(r)[i].loop;
      if (loop == kNone || stages_.may_overlap(loop)) continue;
      if (first == kNone || ops(r)[first].loop != loop) first = i;
      parts_.unite(node(r, first), node(r, i));
    }
  }

  /// An op that reaches into the memory of a rank, or touches what that rank reaches, goes with
  /// the latest wait for it: in a pipeline, of its own stage.
  void tie_waits(uint32_t r) {
    latest_.assign(program_.ranks.size(), kNone);
    for (uint32_t i = 0; i < ops(r).size(); ++i) {
      if (info(ops(r)[i].kind).has(kWaits)) {
        for (const Operand& o : program_.dsts(ops(r)[i])) note(r, o, i);
      } else {
        tie_to_latest(r, i, stages_.stage(i) > 0);
      }
    }
  }

  /// ... and with the next signal to it, which publishes what the op did.
  void tie_signals(uint32_t r) {
    latest_.assign(program_.ranks.size(), kNone);
    for (uint32_t i = static_cast<uint32_t>(ops(r).size()); i-- > 0;) {
      tie_to_latest(r, i, ops(r)[i].loop != kNone);
      if (!info(ops(r)[i].kind).has(kSignals)) continue;
      for (const Operand& o : program_.dsts(ops(r)[i])) note(r, o, i);
    }
  }

  void note(uint32_t r, const Operand& o, uint32_t op) {
    const uint32_t peer = program_.ranks[r].channels[o.channel].peer;
    if (peer != kNone) latest_[peer] = op;
  }

  void tie_to_latest(uint32_t r, uint32_t op, bool same_stage_only) {
    for (const uint32_t cell : cells_.cells_of(r, op)) {
      const uint32_t owner = cells_.owner(cell);
      if (owner != r) {
        tie_to(r, op, owner, same_stage_only);
        continue;
      }
      for (const CellTouch& touch : cells_.touches(cell)) {
        if (touch.rank != r) tie_to(r, op, touch.rank, same_stage_only);
      }
    }
  }

  void tie_to(uint32_t r, uint32_t op, uint32_t peer, bool same_stage_only) {
    const uint32_t other = latest_[peer];
    if (other == kNone) return;
    const bool same =
        ops(r)[op].loop == ops(r)[other].loop && stages_.stage(op) == stages_.stage(other);
    if (same || !same_stage_only) parts_.unite(node(r, op), node(r, other));
  }

  /// Neighbours of one kind that send packets to different ranks, or take what different ranks
  /// sent, become one op; a rank that comes again begins another.
  void tie_packets(uint32_t r) {
    touched_by_.assign(program_.ranks.size(), kNone);
    latest_.assign(program_.ranks.size(), kNone);  // the run in which a rank was seen
    uint32_t run = 0;
    for (uint32_t i = 0; i < ops(r).size(); ++i) {
      const OpInfo& row = info(ops(r)[i].kind);
      const bool goes_on = i > 0 && ops(r)[i - 1].kind == ops(r)[i].kind;
      if (row.cost != CostClass::kPacket) continue;
      if (!goes_on || !see_peers(r, i, run)) {
        see_peers(r, i, ++run);
      } else {
        parts_.unite(node(r, i - 1), node(r, i));
      }
    }
  }

  /// Notes the other ranks at whose packets this op works; false if the run has had one already.
  bool see_peers(uint32_t r, uint32_t op, uint32_t run) {
    bool fresh = true;
    for (const uint32_t cell : cells_.cells_of(r, op)) {
      for (const CellTouch& touch : cells_.touches(cell)) {
        const uint32_t peer = cells_.owner(cell) != r ? cells_.owner(cell) : touch.rank;
        if (peer == r || !touch.packets) continue;
        fresh &= latest_[peer] != run || touched_by_[peer] == op;
        latest_[peer] = run;
        touched_by_[peer] = op;
      }
    }
    return fresh;
  }

  /// What touches the same chunk of whichever rank, one writing, is one chain; between stages of a
  /// pipeline `sync` orders it in each round.
  void tie_chunks(uint32_t r) {
    for (uint32_t i = 0; i < ops(r).size(); ++i) {
      for (const uint32_t cell : cells_.cells_of(r, i)) tie_cell(r, i, cell);
    }
  }

  void tie_cell(uint32_t r, uint32_t op, uint32_t cell) {
    bool writes = false;
    for (const CellTouch& touch : cells_.touches(cell)) {
      if (touch.rank == r && touch.op == op) writes |= touch.write;
    }
    for (const CellTouch& touch : cells_.touches(cell)) {
      if (touch.rank != r || touch.op == op || !(writes || touch.write)) continue;
      const Op &a = ops(r)[op], &b = ops(r)[touch.op];
      const bool by_sync = a.loop != kNone && a.loop == b.loop && stages_.may_overlap(a.loop) &&
                           stages_.stage(op) != stages_.stage(touch.op);
      if (!by_sync) parts_.unite(node(r, op), node(r, touch.op));
    }
  }

  /// A chain that moves no data goes with the next op that does: a block of its own would have
  /// little to do. In pipelines waiting is a stage.
  void tie_talk(uint32_t r) {
    works_.assign(ops(r).size() + 1, false);
    for (uint32_t i = 0; i < ops(r).size(); ++i) {
      if (ops(r)[i].loop != kNone || info(ops(r)[i].kind).moves_data())
        works_[first_of(r, i)] = true;
    }
    uint32_t next = kNone;
    for (uint32_t i = static_cast<uint32_t>(ops(r).size()); i-- > 0;) {
      if (info(ops(r)[i].kind).moves_data()) next = i;
      const bool begins = first_of(r, i) == i;
      if (begins && !works_[i] && next != kNone) parts_.unite(node(r, i), node(r, next));
    }
  }

  /// The op that a chain begins with.
  uint32_t first_of(uint32_t r, uint32_t op) {
    return parts_.find(node(r, op)) - cells_.first_op(r);
  }

  void number(uint32_t r, Chains& chains) {
    std::vector<uint32_t>& numbers = chains.chain.emplace_back();
    std::vector<uint32_t> known(ops(r).size() + 1, kNone);  // by first op of a chain
    uint32_t count = 0;
    for (uint32_t i = 0; i < ops(r).size(); ++i) {
      const uint32_t first = first_of(r, i);
      if (known[first] == kNone) known[first] = count++;
      numbers.push_back(known[first]);
    }
    chains.count.push_back(count);
  }

  const Program& program_;
  const ChainCells& cells_;
  ChainSets parts_;
  Stages stages_;
  uint32_t channel_nodes_ = 0, last_ends_ = 0;
  std::vector<bool> in_loop_;     ///< by channel end of the rank at hand
  std::vector<uint32_t> latest_;  ///< by rank: an op that waits for it, or signals it
  std::vector<uint32_t> touched_by_;
  std::vector<bool> works_;  ///< by first op of a chain: it moves data, or is part of a pipeline
};

bool few_pairs(const ChainCells& cells) {
  uint64_t pairs = 0;
  for (uint32_t c = 0; c < cells.cells(); ++c) {
    pairs += cells.touches(c).size() * cells.touches(c).size();
  }
  return pairs <= kMaxPairs;
}

}  // namespace

bool find_chains(const Program& program, Chains& chains) {
  if (!program.launch.auto_sync || !names_no_place(program)) return false;
  if (mixes_packets_with_signals(program)) return false;
  ChainCells cells;
  if (!cells.collect(program) || !few_pairs(cells)) return false;
  ChainFinder(program, cells).find(chains);
  const auto one = [](uint32_t count) { return count <= 1; };
  if (std::ranges::all_of(chains.count, one) || !rounds_pair_up(program)) return false;
  return ChainRun(program, cells, chains).run(chains.level);
}

}  // namespace mscclc::assign
