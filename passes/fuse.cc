#include "passes/fuse.h"

#include <algorithm>
#include <array>
#include <bit>

#include "passes/fuse_order.h"
#include "passes/fuse_reads.h"
#include "passes/fuse_rules.h"
#include "passes/op_size.h"
#include "passes/passes.h"

namespace mscclc {
namespace {

using namespace fusion;

constexpr int kMostRounds = 8;  // usually the second one finds nothing

constexpr uint32_t kind_bit(OpKind kind) { return 1u << static_cast<size_t>(kind); }

/// Ops [first, last] of a rank.
struct Run {
  Number first, last;
};

/// Finds the runs of ops in which some may fuse, by kind and block alone: from the first op that
/// may be the left one of a pair to the last right one. Whatever is written the way it should be,
/// or between waits, costs next to nothing.
class Runs {
 public:
  Runs() {
    for (const OpInfo& row : op_table()) {
      (row.moves_data() ? data_ : control_) |= kind_bit(row.kind);
      lefts_[static_cast<size_t>(row.kind)] = lefts_of(row.kind);
    }
    for (const OpInfo& row : op_table()) behind_[static_cast<size_t>(row.kind)] = behind(row);
  }

  const std::vector<Run>& find(const Rank& rank) {
    const auto is_port = [](const Channel& c) { return c.kind == ChannelKind::port; };
    const bool ports = std::any_of(rank.channels.begin(), rank.channels.end(), is_port);
    const uint32_t closed = ports ? 0 : kind_bit(OpKind::put) | kind_bit(OpKind::put_with_signal);
    runs_.clear();
    open_.assign(count_blocks(rank) + 1, {});  // the last one for all groups, which stays open
    since_.resize(open_.size());
    for (Number n = 1; n <= rank.ops.size(); ++n) {
      const Op& op = rank.ops[n - 1];
      const size_t kind = static_cast<size_t>(op.kind);
      const uint32_t not_behind = (control_ & kind_bit(op.kind)) != 0 ? closed : 0;
      const size_t place = op.block == kNone ? open_.size() - 1 : op.block;
      Open& open = open_[place];
      Since& since = since_[place];
      if (op.block != kNone && open.loop != op.loop) open.kinds = 0;
      open.loop = op.loop;
      const bool may_fuse = (open.kinds & lefts_[kind] & ~not_behind) != 0;
      const Steps steps = may_fuse ? follow(open.kinds, op.kind) : Steps{};
      const Number first = earliest(since, steps.lefts, n);
      if (may_fuse) add(first, n);
      if (op.block != kNone) open.kinds &= behind_[kind] & ~not_behind;
      note(open, since, steps.results, first);
      note(open, since, kind_bit(op.kind), n);
    }
    return runs_;
  }

 private:
  /// Ops of a block that later ones may still fuse with.
  struct Open {
    uint32_t kinds = 0;
    uint32_t loop = kNone;
  };
  using Since = std::array<Number, kKinds>;  ///< by kind: the first op that may be one

  /// What the right op of a pair may become, one pair after the other, and the left ops of these.
  struct Steps {
    uint32_t lefts = 0, results = 0;
  };

  Steps follow(uint32_t kinds, OpKind right) const {
    Steps steps;
    for (uint32_t rights = kind_bit(right), done = 0; rights != 0;) {
      const uint32_t bit = rights & -rights;
      const OpKind kind = first_kind(bit);
      const uint32_t lefts = kinds & lefts_[static_cast<size_t>(kind)];
      for (uint32_t left = lefts; left != 0; left &= left - 1) {
        for (const Rule& rule : rules(first_kind(left), kind)) {
          steps.results |= kind_bit(rule.result);
        }
      }
      steps.lefts |= lefts;
      done |= bit;
      rights = steps.results & ~done;
    }
    return steps;
  }

  static OpKind first_kind(uint32_t kinds) { return static_cast<OpKind>(std::countr_zero(kinds)); }

  static Number earliest(const Since& since, uint32_t kinds, Number first) {
    for (; kinds != 0; kinds &= kinds - 1) {
      first = std::min(first, since[static_cast<size_t>(first_kind(kinds))]);
    }
    return first;
  }

  /// From op `first` on there may be ops of these kinds.
  static void note(Open& open, Since& since, uint32_t kinds, Number first) {
    for (uint32_t left = kinds; left != 0; left &= left - 1) {
      Number& number = since[static_cast<size_t>(first_kind(left))];
      const bool is_new = (open.kinds & left & -left) == 0;
      if (is_new || first < number) number = first;
    }
    open.kinds |= kinds;
  }

  /// Kinds of op that others can still join behind an op of this kind.
  uint32_t behind(const OpInfo& row) const {
    if (row.moves_data()) return data_;
    const uint32_t port = kind_bit(OpKind::put_with_signal);
    if (row.has(kSignals) || row.has(kReleases)) {
      return kind_bit(OpKind::signal) | kind_bit(OpKind::release) | kind_bit(OpKind::put) | port;
    }
    if (row.has(kMeets) || row.has(kSyncs)) return 0;
    return kind_bit(OpKind::wait) | kind_bit(OpKind::acquire) | kind_bit(OpKind::flush) | port;
  }

  void add(Number first, Number last) {
    while (!runs_.empty() && runs_.back().last >= first) {
      first = std::min(first, runs_.back().first);
      runs_.pop_back();
    }
    runs_.push_back({first, last});
  }

  uint32_t data_ = 0, control_ = 0;                  ///< kinds of op
  std::array<uint32_t, kKinds> lefts_{}, behind_{};  ///< by kind
  std::vector<Open> open_;                           ///< by block, then of groups
  std::vector<Since> since_;                         ///< the same
  std::vector<Run> runs_;
};

class Fuser {
 public:
  Fuser(Program& program, const OpLimits& limits)
      : program_(program), limits_(limits), order_(program), matcher_(program), reads_(program) {}

  FuseStats run() {
    FuseStats stats;
    fired_.assign(rules().size(), 0);
    for (uint32_t r = 0; r < program_.ranks.size(); ++r) {
      stats.before += program_.ranks[r].ops.size();
      for (int round = 0; round < kMostRounds; ++round) {
        const std::vector<Run>& runs = runs_.find(program_.ranks[r]);
        if (runs.empty() || !fuse_rank(r, runs)) break;
      }
      stats.after += program_.ranks[r].ops.size();
    }
    stats.fired.swap(fired_);
    return stats;
  }

 private:
  /// What has become of an op.
  struct Live {
    OpKind kind = OpKind::sync;
    ReduceOp reduce = ReduceOp::call;
    bool complete = false, gone = false;
    uint32_t operands = kNone;  ///< in pool_, or those of the op itself
  };

  /// Goes once through a rank. Returns true if ops have been fused: what they no longer read may
  /// let earlier ones fuse.
  bool fuse_rank(uint32_t rank, const std::vector<Run>& runs) {
    rank_ = rank;
    const std::vector<Op>& ops = program_.ranks[rank].ops;
    if (!order_.start(rank)) return false;
    matcher_.start(rank);
    if (live_.size() <= ops.size()) live_.resize(ops.size() + 1);
    used_ = 0;
    latest_.assign(order_.places().count() * kKinds, kNobody);
    fused_ = false;
    for (const Run& run : runs) {
      for (Number n = run.first; n <= run.last; ++n) {
        const Op& here = ops[n - 1];
        live_[n] = {here.kind, here.reduce, here.complete};
      }
      if (!order_.start_run(run.first, run.last)) continue;
      run_first_ = run.first;
      for (Number n = run.first; n <= run.last; ++n) {
        order_.add(n);
        if (order_.places().of(n) != kNone) settle(n);
      }
    }
    if (fused_) write_back(program_.ranks[rank].ops, runs);
    reads_.settle();
    return fused_;
  }

  const Op& op(Number n) const { return program_.ranks[rank_].ops[n - 1]; }

  View view(Number n) const {
    const Live& live = live_[n];
    View view{live.kind, live.reduce, op(n).relaxed, program_.dsts(op(n)), program_.srcs(op(n))};
    if (live.operands == kNone) return view;
    view.dsts = pool_[live.operands].dsts;
    view.srcs = pool_[live.operands].srcs;
    return view;
  }

  /// Fuses the newest op with earlier ones for as long as that is possible.
  void settle(Number n) {
    Number op = n;
    for (Number news = n; news != kNobody;) {
      const Fused fused = fuse_once(op, news);
      if (fused.op == kNobody) break;
      op = fused.op;
      news = fused.news;
    }
    latest_[slot(op, live_[op].kind)] = op;
  }

  struct Fused {
    Number op = kNobody;    ///< what two ops have become
    Number news = kNobody;  ///< its first part that may have more in common with earlier ops
  };

  /// Tries the ops that wrote what the parts of `right` from `news` on read, then its neighbours.
  Fused fuse_once(Number right, Number news) {
    Fused fused;
    Number tried = kNobody;
    for (Number part = news; part != kNobody; part = order_.next_part(part)) {
      order_.each_writer(part, right, [&](Number left) {
        if (fused.op != kNobody || left == kNobody || left == tried) return;
        tried = left;
        fused = try_pair(left, right);
      });
      if (fused.op != kNobody) return fused;
    }
    const OpKind kind = live_[right].kind;
    fused = try_neighbour(right, kind);
    if (fused.op == kNobody && kind == OpKind::signal) fused = try_neighbour(right, OpKind::put);
    if (fused.op == kNobody && kind == OpKind::flush) {
      fused = try_neighbour(right, OpKind::put_with_signal);
    }
    return fused;
  }

  size_t slot(Number n, OpKind kind) const {
    return order_.places().of(n) * kKinds + static_cast<size_t>(kind);
  }

  /// Tries the latest op of a kind in the same place.
  Fused try_neighbour(Number right, OpKind kind) {
    const Number left = latest_[slot(right, kind)];
    return left == kNobody ? Fused{} : try_pair(left, right);
  }

  Fused try_pair(Number left, Number right) {
    if (left < run_first_ || left >= right || live_[left].gone) return {};
    if (!side_by_side(left, right)) return {};
    for (const Rule& rule : rules(live_[left].kind, live_[right].kind)) {
      if (const Fused fused = try_rule(rule, left, right); fused.op != kNobody) return fused;
    }
    return {};
  }

  bool side_by_side(Number left, Number right) const {
    const Op &a = op(left), &b = op(right);
    return order_.places().of(left) == order_.places().of(right) && a.part == b.part &&
           a.parts == b.parts;
  }

  Fused try_rule(const Rule& rule, Number left, Number right) {
    const View a = view(left), b = view(right);
    Match match;
    if (!matcher_.match(rule, a, b, match)) return {};
    if (exceeds_limits(rule, a, b) || mixes_sources(rule, a, b)) return {};
    const Meet where = order_.meet(left, right, match.flow);
    if (where == Meet::never || !settle_scratch(rule, match)) return {};
    count_reads(rule, match, a, b);
    return merge(rule, match, left, right, where);
  }

  /// False if the rule would take something from ops that still read it.
  bool settle_scratch(const Rule& rule, Match& match) {
    for (const Operand& o : match.shorter) {
      if (reads_.count(rank_, o) != match.flow.uses) return false;
    }
    const uint32_t uses = match.gone.size() == 1 ? match.flow.uses : 1;
    const bool alone = std::ranges::all_of(
        match.gone, [&](const Operand& o) { return reads_.count(rank_, o) == uses; });
    if (rule.form != Form::forward) return alone;
    // A sentinel slot is emptied by its one reader: kept for nobody, it would never be.
    const PacketFormat format = program_.buffer_of(rank_, match.gone[0]).packets;
    if (!alone) return format != PacketFormat::sentinel;
    match.keeps_packets = false;
    match.result = OpKind::reduce_send_packets;
    return true;
  }

  bool exceeds_limits(const Rule& rule, const View& left, const View& right) const {
    size_t dsts = left.dsts.size(), srcs = left.srcs.size();
    switch (rule.form) {
      case Form::join:
        dsts += right.dsts.size();
        srcs += right.srcs.size();
        break;
      case Form::fan:
      case Form::send:
      case Form::forward:
        dsts += right.dsts.size();
        break;
      case Form::sum:
        dsts = right.dsts.size();
        srcs += right.srcs.size() - 1;
        break;
      default:  // as large as one of the two
        return false;
    }
    const ChannelKind channel = channel_of(left);
    return std::max(dsts, srcs) > most_operands(limits_, rule.result, channel);
  }

  ChannelKind channel_of(const View& op) const {
    const uint32_t channel = op.dsts[0].channel;
    return channel == kNone ? ChannelKind::memory : program_.ranks[rank_].channels[channel].kind;
  }

  /// Would the op put from buffers of several kinds, where the target wants one?
  bool mixes_sources(const Rule& rule, const View& left, const View& right) const {
    if (!wants_one_source_kind(limits_, rule.result, channel_of(right))) return false;
    const BufferKind kind = buffer_kind(program_, rank_, left.srcs[0]);
    const auto taken = [&](const Operand& o) {
      return rule.form == Form::through && std::ranges::find(left.dsts, o) != left.dsts.end();
    };
    return std::ranges::any_of(right.srcs, [&](const Operand& o) {
      return !taken(o) && buffer_kind(program_, rank_, o) != kind;
    });
  }

  Fused merge(const Rule& rule, const Match& match, Number left, Number right, Meet where) {
    const Number right_part = order_.first_part(right);
    const uint32_t operands = own_operands(left);
    matcher_.build(rule, match, view(right), pool_[operands]);
    const bool right_counts = rule.form == Form::sum || rule.form == Form::through;
    const Live made{match.result, match.reduce,
                    right_counts ? live_[right].complete : live_[left].complete, false, operands};
    const Number to = order_.merge(left, right, where);
    live_[to == left ? right : left].gone = true;
    live_[to] = made;
    fused_ = true;
    ++fired_[static_cast<size_t>(&rule - rules().data())];
    switch (rule.form) {
      case Form::join:  // only grown: what is in common with earlier ops lies in the new part
        return {to, to == left ? right_part : order_.first_part(to)};
      case Form::queue:
      case Form::through:
      case Form::retarget:
        return {to, order_.first_part(to)};
      default:
        return {to, kNobody};
    }
  }

  /// What the right op has read of the left one's results it does not read any more. What goes
  /// through the left op is read by the right one instead.
  void count_reads(const Rule& rule, const Match& match, const View& left, const View& right) {
    const int32_t uses = static_cast<int32_t>(match.flow.uses);
    switch (rule.form) {
      case Form::join:
      case Form::queue:
        return;
      case Form::fan:
        return reads_.change(rank_, right.srcs[0], -1);
      case Form::through:
        for (const Operand& o : left.dsts)
          reads_.change(rank_, o, left.dsts.size() > 1 ? -1 : -uses);
        for (const Operand& o : left.srcs) {
          reads_.change(rank_, o, static_cast<int32_t>(match.reads) - 1);
        }
        return;
      default:
        return reads_.change(rank_, right.srcs[0], -uses);
    }
  }

  /// The op's operands in the pool, where they can be changed.
  uint32_t own_operands(Number n) {
    if (live_[n].operands != kNone) return live_[n].operands;
    if (used_ == pool_.size()) pool_.emplace_back();
    Operands& own = pool_[used_];
    const View now = view(n);
    own.dsts.assign(now.dsts.begin(), now.dsts.end());
    own.srcs.assign(now.srcs.begin(), now.srcs.end());
    return live_[n].operands = used_++;
  }

  /// Makes the list shorter where it lies: what stands between the runs only moves up.
  void write_back(std::vector<Op>& ops, const std::vector<Run>& runs) {
    Op *to = ops.data(), *from = to;
    for (const Run& run : runs) {
      Op* const begin = ops.data() + run.first - 1;
      to = from == to ? begin : std::move(from, begin, to);
      from = ops.data() + run.last;
      run_ops_.assign(begin, from);
      for (Number n = run.first; n <= run.last; ++n) {
        if (!live_[n].gone) *to++ = fused_op(run, n);
      }
    }
    to = std::move(from, ops.data() + ops.size(), to);
    ops.resize(static_cast<size_t>(to - ops.data()));
  }

  Op fused_op(const Run& run, Number n) {
    const Live& live = live_[n];
    Op op = run_ops_[n - run.first];
    if (live.operands == kNone) return op;
    op.kind = live.kind;
    op.reduce = live.reduce;
    op.complete = live.complete;
    program_.set_operands(op, pool_[live.operands].dsts, pool_[live.operands].srcs);
    op.locations = all_locations(run, n);
    return op;
  }

  Slice all_locations(const Run& run, Number n) {
    std::vector<Location>& arena = program_.locations;
    const uint32_t first = static_cast<uint32_t>(arena.size());
    order_.each_part(n, [&](Number part) {
      const Slice from = run_ops_[part - run.first].locations;
      for (uint32_t i = 0; i < from.count; ++i) arena.push_back(Location(arena[from.first + i]));
    });
    return {first, static_cast<uint32_t>(arena.size()) - first};
  }

  Program& program_;
  const OpLimits limits_;
  Runs runs_;
  Order order_;
  Matcher matcher_;
  ScratchReads reads_;
  uint32_t rank_ = 0;
  Number run_first_ = kNobody;
  std::vector<Live> live_;      ///< by op number, of ops in runs
  std::vector<Number> latest_;  ///< by place and kind
  std::vector<Operands> pool_;
  uint32_t used_ = 0;  ///< of pool_, by this rank
  bool fused_ = false;
  std::vector<uint64_t> fired_;  ///< by rule
  std::vector<Op> run_ops_;      ///< of the run being written back
};

}  // namespace

FuseStats fuse_ops(Program& program, const OpLimits& limits) {
  return Fuser(program, limits).run();
}

bool run_fuse(Program& program, PassContext& context) {
  if (!program.launch.fuse) return true;
  const FuseStats stats = fuse_ops(program, context.limits);
  if (context.record == nullptr) return true;
  for (size_t i = 0; i < stats.fired.size(); ++i) {
    context.count(print_rule(rules()[i]), stats.fired[i]);
  }
  return true;
}

}  // namespace mscclc
