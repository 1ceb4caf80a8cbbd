#include "passes/assign/chain_run.h"

#include <algorithm>

namespace mscclc::assign {
namespace {

constexpr uint32_t kCalls = 2;
constexpr uint64_t kMaxRows = uint64_t{1} << 24;  ///< numbers in all rows of a class

}  // namespace

ChainRun::ChainRun(const Program& program, const ChainCells& cells, const Chains& chains)
    : program_(program), cells_(cells), chains_(chains) {
  make_chains();
  find_waits_of_sync();
  ends_.resize(program.ranks.size());
  for (uint32_t r = 0; r < ends_.size(); ++r) ends_[r].resize(program.ranks[r].channels.size());
  said_.resize(cells.ops());
  done_calls_.assign(cells.ops(), 0);
  levels_.assign(cells.ops(), 0);
  filled_.assign(cells.cells(), 0);
  cell_level_.assign(cells.cells(), 0);
  head_.assign(cells.cells(), kNone);
  rank_place_.assign(program.ranks.size(), kNone);
}

void ChainRun::make_chains() {
  for (uint32_t r = 0; r < program_.ranks.size(); ++r) {
    first_chain_.push_back(static_cast<uint32_t>(all_.size()));
    all_.resize(all_.size() + chains_.count[r]);
    for (uint32_t i = 0; i < program_.ranks[r].ops.size(); ++i) {
      Chain& chain = all_[chain_of(r, i)];
      chain.rank = r;
      chain.ops.push_back(i);
    }
  }
}

/// Conflicts between chains of a rank: only stages of one pipeline have them.
void ChainRun::find_waits_of_sync() {
  needed_.assign(cells_.ops(), false);
  after_.resize(program_.loops.empty() ? 0 : cells_.ops());
  for (uint32_t cell = 0; cell < cells_.cells() && !after_.empty(); ++cell) {
    const std::span<const CellTouch> touches = cells_.touches(cell);
    for (size_t i = 0; i < touches.size(); ++i) {
      const CellTouch& later = touches[i];
      for (size_t k = 0; k < i; ++k) {
        const CellTouch& earlier = touches[k];
        if (earlier.rank != later.rank || !(earlier.write || later.write)) continue;
        if (chain_of(later.rank, later.op) == chain_of(later.rank, earlier.op)) continue;
        after_[global(later.rank, later.op)].push_back(earlier.op);
        needed_[global(later.rank, earlier.op)] = true;
      }
    }
  }
}

/// Chains that touch the same chunk, one of them writing.
void ChainRun::unite_by_cells(ChainSets& parts) {
  written_.assign(cells_.cells(), false);
  for (uint32_t cell = 0; cell < cells_.cells(); ++cell) {
    const std::span<const CellTouch> touches = cells_.touches(cell);
    written_[cell] = std::ranges::any_of(touches, [](const CellTouch& t) { return t.write; });
    for (size_t i = 1; i < touches.size() && written_[cell]; ++i) {
      parts.unite(chain_of(touches[0].rank, touches[0].op),
                  chain_of(touches[i].rank, touches[i].op));
    }
  }
}

/// Chains that use the two ends of a channel.
void ChainRun::unite_by_channels(ChainSets& parts) const {
  std::vector<std::vector<uint32_t>> signaller(program_.ranks.size());
  const auto for_ends = [&](Effects effect, auto visit) {
    for (uint32_t r = 0; r < signaller.size(); ++r) {
      for (uint32_t i = 0; i < program_.ranks[r].ops.size(); ++i) {
        const Op& op = program_.ranks[r].ops[i];
        if (!info(op.kind).has(effect)) continue;
        for (const Operand& o : program_.dsts(op)) visit(r, o.channel, chain_of(r, i));
      }
    }
  };
  for (uint32_t r = 0; r < signaller.size(); ++r) {
    signaller[r].assign(program_.ranks[r].channels.size(), kNone);
  }
  for_ends(kSignals, [&](uint32_t r, uint32_t end, uint32_t chain) { signaller[r][end] = chain; });
  for_ends(kWaits, [&](uint32_t r, uint32_t end, uint32_t chain) {
    const Channel& channel = program_.ranks[r].channels[end];
    if (channel.partner == kNone) return;
    const uint32_t other = signaller[channel.peer][channel.partner];
    if (other != kNone) parts.unite(chain, other);
  });
}

/// Chains that have nothing to do with each other are in different classes.
std::vector<std::vector<uint32_t>> ChainRun::find_classes() {
  ChainSets parts(static_cast<uint32_t>(all_.size()));
  unite_by_cells(parts);
  unite_by_channels(parts);
  std::vector<std::vector<uint32_t>> classes;
  std::vector<uint32_t> place(all_.size(), kNone);
  for (uint32_t c = 0; c < all_.size(); ++c) {
    const uint32_t first = parts.find(c);
    if (place[first] == kNone) {
      place[first] = static_cast<uint32_t>(classes.size());
      classes.emplace_back();
    }
    classes[place[first]].push_back(c);
  }
  return classes;
}

bool ChainRun::run(std::vector<std::vector<uint32_t>>& level) {
  for (const std::vector<uint32_t>& members : find_classes()) {
    if (!run_class(members)) return false;
  }
  level.resize(program_.ranks.size());
  for (uint32_t r = 0; r < level.size(); ++r) {
    level[r].assign(levels_.begin() + cells_.first_op(r), levels_.begin() + cells_.first_op(r + 1));
  }
  return true;
}

void ChainRun::start_class(const std::vector<uint32_t>& members) {
  for (const uint32_t r : class_ranks_) rank_place_[r] = kNone;
  class_ranks_.clear();
  of_rank_.clear();
  members_ = static_cast<uint32_t>(members.size());
  for (uint32_t m = 0; m < members_; ++m) {
    all_[members[m]].member = m;
    const uint32_t r = all_[members[m]].rank;
    if (rank_place_[r] == kNone) {
      rank_place_[r] = static_cast<uint32_t>(class_ranks_.size());
      class_ranks_.push_back(r);
      of_rank_.emplace_back();
    }
    of_rank_[rank_place_[r]].push_back(members[m]);
  }
  ended_.assign(class_ranks_.size(), 0);
  guests_.assign(class_ranks_.size(), {});
  const uint32_t nothing = members_;
  rows_.start(members_ + static_cast<uint32_t>(class_ranks_.size()), members_ + 1);
  for (uint32_t m = 0; m < members_; ++m) {
    rows_[m][members_ + rank_place_[all_[members[m]].rank]] = 1;
  }
  begin_rows_.assign(class_ranks_.size(), nothing);
  records_.clear();
}

bool ChainRun::run_class(const std::vector<uint32_t>& members) {
  if (uint64_t{members.size()} * members.size() > kMaxRows) return false;
  start_class(members);
  for (bool progress = true; progress;) {
    progress = false;
    for (const uint32_t c : members) {
      while (step(c)) progress = true;
      if (!ordered_ || rows_.numbers() > kMaxRows) return false;
    }
    for (uint32_t place = 0; place < class_ranks_.size(); ++place) progress |= end_call(place);
  }
  return ordered_ && std::ranges::all_of(ended_, [](uint32_t calls) { return calls == kCalls; });
}

/// The next op of a chain, if it can go on.
bool ChainRun::step(uint32_t c) {
  Chain& chain = all_[c];
  if (!ordered_ || chain.next == chain.ops.size() || chain.calls == kCalls) return false;
  const uint32_t op = chain.ops[chain.next];
  const Op& self = program_.ranks[chain.rank].ops[op];
  if (!ready(chain, op)) return false;
  if (info(self.kind).has(kWaits) && !take(chain, self)) return false;
  if (!access(c, op)) return ordered_ = false;
  ++rows_[chain.member][chain.member];
  ++chain.level;
  note_done(chain, op);
  ++chain.next;
  return true;
}

/// Have the packets come, and the ops that `sync` waits for been done?
bool ChainRun::ready(Chain& chain, uint32_t op) {
  const uint32_t self = global(chain.rank, op);
  const std::span<const CellTouch> touches = cells_.touches_of(chain.rank, op);
  const std::span<const uint32_t> cells = cells_.cells_of(chain.rank, op);
  for (size_t i = 0; i < cells.size(); ++i) {
    if (!touches[i].packets || touches[i].write) continue;
    if (filled_[cells[i]] <= chain.calls) return false;
    chain.level = std::max(chain.level, cell_level_[cells[i]]);
  }
  if (after_.empty()) return true;
  for (const uint32_t other : after_[self]) {
    if (done_calls_[global(chain.rank, other)] <= chain.calls) return false;
  }
  for (const uint32_t other : after_[self]) {
    const Word& word = said_[global(chain.rank, other)];
    rows_.raise(chain.member, word.row);
    chain.level = std::max(chain.level, word.level);
  }
  return true;
}

/// Takes the signals that a wait is for, as far as they have come.
bool ChainRun::take(Chain& chain, const Op& op) {
  const std::span<const Operand> operands = program_.dsts(op);
  for (; chain.operand < operands.size(); ++chain.operand) {
    End& end = ends_[chain.rank][operands[chain.operand].channel];
    if (end.taken == end.words.size()) return false;
    const Word& word = end.words[end.taken++];
    const bool relaxed = word.relaxed || op.relaxed;
    if (relaxed) rows_.raise(chain.member, word.begin_row);
    rows_.raise(chain.member, word.row, relaxed ? members_ : 0);
    chain.level = std::max(chain.level, word.level);
  }
  chain.operand = 0;
  return true;
}

bool ChainRun::access(uint32_t c, uint32_t op) {
  const Chain& chain = all_[c];
  const std::span<const CellTouch> touches = cells_.touches_of(chain.rank, op);
  const std::span<const uint32_t> cells = cells_.cells_of(chain.rank, op);
  for (size_t i = 0; i < cells.size(); ++i) {
    if (touches[i].packets) continue;
    if (cells_.is_callers(cells[i]) && !visit(c, cells[i])) return false;
    if (written_[cells[i]] && !access_cell(c, cells[i], touches[i].write)) return false;
  }
  return true;
}

bool ChainRun::access_cell(uint32_t c, uint32_t cell, bool write) {
  Chain& chain = all_[c];
  const uint32_t* known = rows_[chain.member];
  for (uint32_t at = head_[cell]; at != kNone; at = records_[at].next) {
    const Record& record = records_[at];
    const Chain& other = all_[record.chain];
    if (other.rank == chain.rank || !(record.write || write)) continue;
    if (known[other.member] < record.time) return false;
  }
  if (write) head_[cell] = kNone;
  records_.push_back({c, known[chain.member] + 1, head_[cell], write});
  head_[cell] = static_cast<uint32_t>(records_.size() - 1);
  return true;
}

/// Another rank's buffer: that rank must be known to be in the same call, and must not have left.
bool ChainRun::visit(uint32_t c, uint32_t cell) {
  const Chain& chain = all_[c];
  const uint32_t owner = cells_.owner(cell);
  if (owner == chain.rank) return true;
  const uint32_t place = rank_place_[owner];
  if (place == kNone || ended_[place] > chain.calls) return false;
  if (rows_[chain.member][members_ + place] < chain.calls + 1) return false;
  guests_[place].push_back({c, rows_[chain.member][chain.member] + 1, chain.calls});
  return true;
}

/// Notes that the op is done, for ops that wait for it.
void ChainRun::note_done(Chain& chain, uint32_t op) {
  const uint32_t self = global(chain.rank, op);
  done_calls_[self] = chain.calls + 1;
  if (chain.calls == 0) levels_[self] = chain.level;
  const std::span<const CellTouch> touches = cells_.touches_of(chain.rank, op);
  const std::span<const uint32_t> cells = cells_.cells_of(chain.rank, op);
  for (size_t i = 0; i < cells.size(); ++i) {
    if (!touches[i].packets || !touches[i].write) continue;
    filled_[cells[i]] = chain.calls + 1;
    cell_level_[cells[i]] = chain.level;
  }
  const Op& op_here = program_.ranks[chain.rank].ops[op];
  if (needed_[self]) said_[self] = {rows_.copy(chain.member), 0, false, chain.level};
  if (info(op_here.kind).has(kSignals)) publish(chain, op_here);
}

void ChainRun::publish(Chain& chain, const Op& op) {
  const uint32_t begin_row = begin_rows_[rank_place_[chain.rank]];
  const Word word{rows_.copy(chain.member), begin_row, op.relaxed, chain.level};
  for (const Operand& o : program_.dsts(op)) {
    const Channel& channel = program_.ranks[chain.rank].channels[o.channel];
    if (channel.partner != kNone) ends_[channel.peer][channel.partner].words.push_back(word);
  }
}

/// All chains of a rank have come to the end of a call: what one knows all know. False if not.
bool ChainRun::end_call(uint32_t place) {
  const std::vector<uint32_t>& chains = of_rank_[place];
  const auto at_end = [&](uint32_t c) { return all_[c].next == all_[c].ops.size(); };
  if (ended_[place] == kCalls || !std::ranges::all_of(chains, at_end)) return false;
  const uint32_t first = all_[chains[0]].member;
  for (const uint32_t c : chains) rows_.raise(first, all_[c].member);
  for (const Guest& guest : guests_[place]) {
    const bool known = rows_[first][all_[guest.chain].member] >= guest.time;
    if (guest.call == ended_[place] && !known) ordered_ = false;
  }
  ++ended_[place];
  rows_[first][members_ + place] = ended_[place] + 1;
  begin_rows_[place] = rows_.copy(first);
  for (const uint32_t c : chains) {
    rows_.raise(all_[c].member, first);
    all_[c].next = 0;
    all_[c].calls = ended_[place];
  }
  return true;
}

}  // namespace mscclc::assign
