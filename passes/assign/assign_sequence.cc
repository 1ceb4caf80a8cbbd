// See assign_sequence.h.
//
// Each side of a channel end serves one block or group (`signal`, `flush` and every port put on
// the sending side, `wait` on the other): an op on a side that is already served must go there. If
// all such ops go to one place, so do all others that have none; else these go to extra blocks
// after the highest named one: one, or one for each stage of a pipeline.
//
//   tb 0 { signal up relaxed }                   tb 0 { signal up relaxed }
//   put up.s[0] <- input[0]               =>     tb 0 { put up.s[0] <- input[0] }
//   signal up                                    tb 0 { signal up }
//
// Ops without a place are one sequence as they are written: the signal publishes the put before it.
// Where they end up in different places, a semaphore hands on from one to the next (unless
// `auto_sync: false`).
#include "passes/assign/assign_sequence.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/report/op_error.h"
#include "passes/assign/chains.h"
#include "passes/assign/stages.h"
#include "passes/framework/inserts.h"
#include "passes/framework/passes.h"

namespace mscclc::assign {
namespace {

/// A block or a group.
struct OpPlace {
  uint32_t block = kNone, group = kNone;
  bool known() const { return block != kNone || group != kNone; }
  bool operator==(const OpPlace&) const = default;
};

OpPlace place_of(const Op& op) { return {op.block, op.group}; }

/// The blocks that serve the two sides of each channel end of a rank.
struct Sides {
  std::vector<OpPlace> sending, waiting;
};

/// The side of an op's channel ends that it uses, or nullptr.
std::vector<OpPlace>* side_of(const Program& program, uint32_t rank, const Op& op, Sides& sides) {
  const OpInfo& row = info(op.kind);
  if (row.has(kWaits)) return &sides.waiting;
  if (row.has(kSignals) || row.has(kFlushes)) return &sides.sending;
  const bool puts = row.dsts.count > 0 && row.dsts.slot[0].kind == SlotKind::remote;
  if (puts && channel_kind(program, rank, op) == ChannelKind::port) return &sides.sending;
  return nullptr;
}

class Assigner {
 public:
  Assigner(Program& program, uint32_t most_blocks, Diagnostics& diagnostics)
      : program_(program),
        diagnostics_(diagnostics),
        most_blocks_(most_blocks),
        rounds_pair_up_(rounds_pair_up(program)),
        stages_(program) {}

  bool run(uint32_t rank) {
    Rank& here = program_.ranks[rank];
    const auto floats = [](const Op& op) { return !place_of(op).known(); };
    if (std::none_of(here.ops.begin(), here.ops.end(), floats)) return true;
    read_sides(rank);
    home_ = find_home(rank);
    staged_ = find_stages(rank);
    placed_.clear();
    placed_.reserve(here.ops.size());
    sequence_.clear();
    for (uint32_t i = 0; i < here.ops.size(); ++i) {
      const Op& op = here.ops[i];
      if (!floats(op)) {
        placed_.push_back(op);
      } else if (staged_ && op.loop != kNone) {
        add(op, stage_place(i));
      } else if (!place(rank, op)) {
        return false;
      }
    }
    if (program_.launch.auto_sync) hand_on(here);
    here.ops.swap(placed_);
    here.blocks = std::max(here.blocks, count_blocks(here));
    return true;
  }

 private:
  void read_sides(uint32_t rank) {
    const Rank& here = program_.ranks[rank];
    sides_.sending.assign(here.channels.size(), {});
    sides_.waiting.assign(here.channels.size(), {});
    for (const Op& op : here.ops) {
      if (!place_of(op).known()) continue;
      std::vector<OpPlace>* side = side_of(program_, rank, op, sides_);
      if (side == nullptr) continue;
      for (const Operand& o : program_.dsts(op)) (*side)[o.channel] = place_of(op);
    }
  }

  /// Where ops go that may go anywhere.
  OpPlace find_home(uint32_t rank) {
    OpPlace common;
    for (const Op& op : program_.ranks[rank].ops) {
      if (place_of(op).known()) continue;
      const std::vector<OpPlace>* side = side_of(program_, rank, op, sides_);
      if (side == nullptr) continue;
      for (const Operand& o : program_.dsts(op)) {
        const OpPlace served = (*side)[o.channel];
        if (!served.known() || served == common) continue;
        if (common.known()) return extra_block(rank, 0);
        common = served;
      }
    }
    return common.known() ? common : extra_block(rank, 0);
  }

  /// The n-th block after the named ones; the last that there may be, if these are not enough.
  OpPlace extra_block(uint32_t rank, uint32_t n) const {
    const uint32_t block = count_named_blocks(program_, program_.ranks[rank]) + n;
    return {.block = most_blocks_ == 0 ? block : std::min(block, most_blocks_ - 1)};
  }

  // ---- stages of pipelines ----

  OpPlace stage_place(uint32_t op) const { return stage_blocks_[stages_.stage(op)]; }

  /// May the stages of the rank's pipelines have a block each? Then the sides of channels that
  /// they use are theirs.
  bool find_stages(uint32_t rank) {
    if (!rounds_pair_up_ || !program_.launch.auto_sync || home_ != extra_block(rank, 0))
      return false;
    const std::vector<Op>& ops = program_.ranks[rank].ops;
    stages_.find(rank);
    uint32_t count = 0;
    for (uint32_t i = 0; i < ops.size(); ++i) {
      if (ops[i].loop == kNone) continue;
      const OpInfo& row = info(ops[i].kind);
      const bool orders =
          row.has(kReleases) || row.has(kAcquires) || row.has(kMeets) || row.has_flags();
      if (place_of(ops[i]).known() || orders || !stages_.may_overlap(ops[i].loop)) return false;
      count = std::max(count, stages_.stage(i) + 1);
    }
    if (count < 2) return false;
    stage_blocks_.clear();
    for (uint32_t n = 0; n < count; ++n) stage_blocks_.push_back(extra_block(rank, n));
    return take_sides(rank);
  }

  /// False if two stages share a side of a channel end: nothing has changed then.
  bool take_sides(uint32_t rank) {
    const std::vector<Op>& ops = program_.ranks[rank].ops;
    const Sides before = sides_;
    for (uint32_t i = 0; i < ops.size(); ++i) {
      std::vector<OpPlace>* side = side_of(program_, rank, ops[i], sides_);
      if (ops[i].loop == kNone || side == nullptr) continue;
      for (const Operand& o : program_.dsts(ops[i])) {
        OpPlace& served = (*side)[o.channel];
        if (served.known() && served != stage_place(i)) {
          sides_ = before;
          return false;
        }
        served = stage_place(i);
      }
    }
    return true;
  }

  /// What no named op serves, home does.
  OpPlace served_at(const std::vector<OpPlace>& side, const Operand& end) const {
    return side[end.channel].known() ? side[end.channel] : home_;
  }

  bool place(uint32_t rank, const Op& op) {
    if (op.kind == OpKind::barrier) return place_barrier(op), true;
    const std::vector<OpPlace>* side = side_of(program_, rank, op, sides_);
    if (side == nullptr) return add(op, {}), true;
    const OpPlace first = served_at(*side, program_.dsts(op)[0]);
    const bool together = std::ranges::all_of(
        program_.dsts(op), [&](const Operand& o) { return served_at(*side, o) == first; });
    if (together) return add(op, first), true;
    if (!can_take_apart(rank, op, *side)) return false;
    place_parts(op, *side);
    return true;
  }

  /// Not if each part would take the same packets, and only the first one could.
  bool can_take_apart(uint32_t rank, const Op& op, const std::vector<OpPlace>& side) {
    if (!info(op.kind).has(kPolls)) return true;
    if (!is_sentinel(program_.buffer_of(rank, program_.srcs(op)[0]).packets)) return true;
    const std::span<const Operand> dsts = program_.dsts(op);
    const OpPlace first = served_at(side, dsts[0]);
    const auto other =
        std::ranges::find_if(dsts, [&](const Operand& o) { return served_at(side, o) != first; });
    const auto text = [&](const OpPlace& place) {
      Op there = op;
      there.block = place.block;
      there.group = place.group;
      return print_place(program_, rank, there);
    };
    Diagnostic& d = op_error(diagnostics_, "channel-shared", program_, rank, op,
                             "the far ends are served by different thread blocks, but only one can "
                             "take packets from the slot: sentinel packets can be read once");
    d.notes.push_back(
        {fmt::format("each side of a channel serves one block or group; these are "
                     "served at {}, and at {}",
                     text(first), text(served_at(side, *other)))});
    return false;
  }

  /// The ends of this op serve different places: one op for each place, in order of appearance.
  void place_parts(const Op& op, const std::vector<OpPlace>& side) {
    const std::vector<Operand> dsts(program_.dsts(op).begin(), program_.dsts(op).end());
    const std::vector<Operand> srcs(program_.srcs(op).begin(), program_.srcs(op).end());
    const bool pairwise = dsts.size() == srcs.size();
    std::vector<bool> done(dsts.size());
    for (size_t i = 0; i < dsts.size(); ++i) {
      if (done[i]) continue;
      const OpPlace place = served_at(side, dsts[i]);
      part_dsts_.clear();
      part_srcs_.clear();
      for (size_t k = i; k < dsts.size(); ++k) {
        if (served_at(side, dsts[k]) != place) continue;
        done[k] = true;
        part_dsts_.push_back(dsts[k]);
        if (pairwise) part_srcs_.push_back(srcs[k]);
      }
      Op part = op;
      program_.set_operands(part, part_dsts_, pairwise ? part_srcs_ : srcs);
      add(part, place);
    }
  }

  void place_barrier(Op op) {
    for (const Operand& o : program_.dsts(op)) {
      op.block = o.first;
      placed_.push_back(op);
    }
  }

  void add(Op op, OpPlace place) {
    if (!place.known()) place = home_;
    op.block = place.block;
    op.group = place.group;
    sequence_.push_back(static_cast<uint32_t>(placed_.size()));
    placed_.push_back(op);
  }

  // ---- the sequence, from place to place ----

  void hand_on(Rank& here) {
    inserts_.clear();
    keys_ = 0;
    for (size_t i = 0; i + 1 < sequence_.size(); ++i) {
      const uint32_t from = sequence_[i], to = sequence_[i + 1];
      if (place_of(placed_[from]) == place_of(placed_[to])) continue;
      const bool inside = placed_[from].loop == placed_[to].loop;
      add_release(here, from, inside);
      add_acquire(to, inside);
    }
    close_rounds(here);
    if (!inserts_.empty()) inserts_.merge(placed_);
  }

  /// A round of a pipeline begins when the one before it has ended, unless it has stages.
  void close_rounds(Rank& here) {
    if (staged_) return;
    for (size_t i = 0; i < sequence_.size();) {
      const uint32_t first = sequence_[i], loop = placed_[first].loop;
      size_t end = i + 1;
      while (end < sequence_.size() && placed_[sequence_[end]].loop == loop) ++end;
      const uint32_t last = sequence_[end - 1];
      i = end;
      if (loop == kNone || place_of(placed_[first]) == place_of(placed_[last])) continue;
      add_release(here, last, true);
      add_acquire(first, true);
      here.semaphores.back().initial = 1;
    }
  }

  /// Makes a semaphore and releases it after the op, or after the pipeline that the op is in.
  void add_release(Rank& here, uint32_t op, bool inside) {
    const int64_t key = keys_++;
    here.semaphores.push_back(
        {.label = {label(), program_.append({&key, 1})}, .initial = 0, .declared = {}});
    semaphore_ = static_cast<uint32_t>(here.semaphores.size() - 1);
    uint32_t at = op;
    while (!inside && at + 1 < placed_.size() && same_loop(at, at + 1)) ++at;
    const bool whole_loop = !inside && placed_[op].loop != kNone;
    inserts_.add(at, whole_loop ? Inserts::after_loop : Inserts::after,
                 hand_over(OpKind::release, op, inside));
  }

  /// Takes the newest semaphore before the op, or in front of the pipeline that the op is in.
  void add_acquire(uint32_t op, bool inside) {
    uint32_t at = op;
    while (!inside && at > 0 && same_loop(at, at - 1)) --at;
    const bool whole_loop = !inside && placed_[op].loop != kNone;
    inserts_.add(at, whole_loop ? Inserts::before_loop : Inserts::before,
                 hand_over(OpKind::acquire, op, inside));
  }

  bool same_loop(uint32_t a, uint32_t b) const {
    return placed_[a].loop != kNone && placed_[a].loop == placed_[b].loop;
  }

  /// A release or acquire of the newest semaphore, where `op` stands.
  Op hand_over(OpKind kind, uint32_t op, bool inside) {
    Op made;
    made.kind = kind;
    made.block = placed_[op].block;
    made.group = placed_[op].group;
    made.loop = inside ? placed_[op].loop : kNone;
    made.locations = placed_[op].locations;
    const Operand operand{.first = semaphore_};
    program_.set_operands(made, {&operand, 1}, {});
    return made;
  }

  NameId label() {
    if (label_ == kNone) label_ = unused_name(program_, "turn");
    return label_;
  }

  Program& program_;
  Diagnostics& diagnostics_;
  const uint32_t most_blocks_;  ///< 0: any number
  const bool rounds_pair_up_;
  OpPlace home_;
  bool staged_ = false;
  Stages stages_;
  std::vector<OpPlace> stage_blocks_;  ///< by stage
  Sides sides_;
  std::vector<Op> placed_;
  std::vector<uint32_t> sequence_;  ///< in placed_: what had no place
  std::vector<Operand> part_dsts_, part_srcs_;
  Inserts inserts_;
  NameId label_ = kNone;
  int64_t keys_ = 0;
  uint32_t semaphore_ = 0;
};

}  // namespace

bool place_sequences(Program& program, uint32_t most_blocks, Diagnostics& diagnostics) {
  Assigner assigner(program, most_blocks, diagnostics);
  for (uint32_t r = 0; r < program.ranks.size(); ++r) {
    if (!assigner.run(r)) return false;
  }
  return true;
}

}  // namespace mscclc::assign
