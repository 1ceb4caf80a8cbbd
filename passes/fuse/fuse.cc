#include "passes/fuse/fuse.h"

#include <algorithm>
#include <mutex>

#include "passes/framework/op_size.h"
#include "passes/framework/passes.h"
#include "passes/framework/rank_work.h"
#include "passes/fuse/drop_scratch.h"
#include "passes/fuse/fuse_reads.h"
#include "passes/fuse/fuse_rules.h"
#include "passes/fuse/fuse_runs.h"
#include "passes/fuse/reorder/fuse_order.h"

namespace mscclc {
namespace {

using namespace fusion;

constexpr int kMaxRounds = 8;  // usually the second one finds nothing
constexpr size_t kMaxLookedAtAgain = 128;
constexpr size_t kMaxJoined = 4096;  // operands of a side: each new one costs a look at all others

class Fuser {
 public:
  Fuser(Program& program, Additions& additions, const OpLimits& limits)
      : program_(program),
        additions_(additions),
        limits_(limits),
        order_(program),
        matcher_(program),
        reads_(program),
        fired_(rules().size(), 0) {}

  /// Fuses what can be fused. `alone`: no other thread changes the program's ops meanwhile. False
  /// if it is not, and must be to know what reads scratch: the rank may be fused in part then.
  bool run(uint32_t rank, bool alone) {
    alone_ = alone;
    reads_.begin(alone);
    for (int round = 0; round < kMaxRounds; ++round) {
      const std::vector<OpRange>& runs = runs_.find(program_.ranks[rank]);
      if (runs.empty() || !fuse_rank(rank, runs)) break;
    }
    return !must_wait();
  }
  /// Did the last rank need to know what reads scratch?
  bool asked_for_reads() const { return reads_.asked(); }
  /// How often each rule has fired.
  const std::vector<uint64_t>& fired() const { return fired_; }
  /// How many pairs of ops have been looked at.
  uint64_t tried() const { return tried_; }

 private:
  /// What has become of an op.
  struct Live {
    OpKind kind = OpKind::sync;
    ReduceOp reduce = ReduceOp::call;
    Summation summation = Summation::in_turn;
    bool complete = false, gone = false;
    Slice applied = {};
    uint32_t operands = kNone;  ///< in pool_, or those of the op itself
    /// The last of its parts that reads what the op still reads; kNoOp: the last of all.
    Number last_read = kNoOp;
  };

  /// Goes once through a rank. Returns true if ops have been fused: what they no longer read may
  /// let earlier ones fuse.
  bool fuse_rank(uint32_t rank, const std::vector<OpRange>& runs) {
    rank_ = rank;
    const std::vector<Op>& ops = program_.ranks[rank].ops;
    if (!order_.start(rank)) return false;
    matcher_.start(rank);
    if (live_.size() <= ops.size()) live_.resize(ops.size() + 1);
    used_ = 0;
    latest_.assign(order_.places().count() * kKinds, kNoOp);
    fused_ = false;
    for (const OpRange& run : runs) {
      for (Number n = run.first; n <= run.last; ++n) {
        const Op& here = ops[n - 1];
        live_[n] = {here.kind, here.reduce, here.summation, here.complete, false, here.applied};
      }
      if (!order_.start_run(run.first, run.last)) continue;
      run_first_ = run.first;
      for (Number n = run.first; n <= run.last; ++n) {
        order_.add(n);
        if (order_.places().of(n) != kNone) settle(n);
        if (must_wait()) {
          reads_.settle();
          return false;
        }
      }
    }
    if (fused_) write_back(program_.ranks[rank].ops, runs);
    reads_.settle();
    return fused_;
  }

  /// The rank's turn comes when no other thread changes ops.
  bool must_wait() const { return !alone_ && reads_.asked(); }

  const Op& op(Number n) const { return program_.ranks[rank_].ops[n - 1]; }

  View view(Number n) const {
    const Live& live = live_[n];
    View view{live.kind,      live.reduce,          op(n).relaxed,
              live.summation, program_.dsts(op(n)), program_.srcs(op(n)),
              live.applied,   op(n).loop != kNone};
    if (live.operands == kNone) return view;
    view.dsts = pool_[live.operands].dsts;
    view.srcs = pool_[live.operands].srcs;
    return view;
  }

  /// Fuses the newest op with earlier ones for as long as that is possible.
  void settle(Number n) {
    Number op = n;
    for (Number news = n; news != kNoOp;) {
      const Fused fused = fuse_once(op, news);
      if (fused.op == kNoOp) break;
      op = fused.op;
      news = fused.news;
    }
    latest_[slot(op, live_[op].kind)] = op;
  }

  struct Fused {
    Number op = kNoOp;    ///< what two ops have become
    Number news = kNoOp;  ///< its first part that may have more in common with earlier ops
  };

  /// Tries the ops that wrote what the parts of `right` from `news` on read, then its neighbours.
  Fused fuse_once(Number right, Number news) {
    Fused fused;
    Number tried = kNoOp;
    for (Number part = news; part != kNoOp; part = order_.next_part(part)) {
      order_.each_writer(part, right, [&](Number left) {
        if (fused.op != kNoOp || left == kNoOp || left == tried) return;
        tried = left;
        fused = try_pair(left, right);
      });
      if (fused.op != kNoOp) return fused;
      if (part == live_[right].last_read) break;
    }
    const OpKind kind = live_[right].kind;
    fused = try_neighbour(right, kind);
    if (fused.op == kNoOp && kind == OpKind::signal) fused = try_neighbour(right, OpKind::put);
    if (fused.op == kNoOp && kind == OpKind::flush) {
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
    return left == kNoOp ? Fused{} : try_pair(left, right);
  }

  Fused try_pair(Number left, Number right) {
    if (left < run_first_ || left >= right || live_[left].gone) return {};
    if (!side_by_side(left, right)) return {};
    ++tried_;
    for (const Rule& rule : rules(live_[left].kind, live_[right].kind)) {
      if (const Fused fused = try_rule(rule, left, right); fused.op != kNoOp) return fused;
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
    if (rule.form == Form::through && read_by_others(a, b)) return {};
    Match match;
    if (!matcher_.match(rule, a, b, match)) return {};
    if (exceeds_limits(rule, a, b) || mixes_sources(rule, a, b)) return {};
    if (lacks(limits_, match.result) || moves_get(rule) || mixes_sum(match, a, b)) return {};
    const Meet where = order_.meet(left, right, match.flow);
    if (where == Meet::never || !settle_scratch(rule, match)) return {};
    count_reads(rule, match, a, b);
    return merge(rule, match, left, right, where);
  }

  /// Is it plain, without looking at all operands of a long op several times, that others read what
  /// goes through the left op (settle_scratch)?
  bool read_by_others(const View& left, const View& right) {
    if (right.srcs.size() <= kMaxLookedAtAgain || left.dsts.size() != 1) return false;
    const Operand& through = left.dsts[0];
    if (through.channel != kNone || through.buffer < kFirstScratch) return false;
    const auto uses = std::ranges::count(right.srcs, through);
    return uses > 0 && reads_.count(rank_, through) != static_cast<uint64_t>(uses);
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
    // A sentinel slot is emptied by its one reader: kept for no reader, it would never be.
    const PacketFormat format = program_.buffer_of(rank_, match.gone[0]).packets;
    if (!alone) return !is_sentinel(format);
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
        if (std::max(dsts, srcs) > kMaxJoined) return true;
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

  /// Would a get go elsewhere, where the target wants it at one offset?
  bool moves_get(const Rule& rule) const {
    return limits_.fixed_gets && rule.form == Form::retarget && rule.result == OpKind::get;
  }

  /// Would a sum have local operands of several kinds, where the target wants one?
  bool mixes_sum(const Match& match, const View& left, const View& right) const {
    const bool sums = match.result == OpKind::reduce || match.result == OpKind::reduce_send;
    if (!limits_.unmixed_shared_sums || !program_.launch.reuse_scratch || !sums) return false;
    bool scratch = false, callers = false;
    for (const std::span<const Operand> side : {left.dsts, left.srcs, right.dsts, right.srcs}) {
      for (const Operand& o : side) {
        if (o.channel != kNone || std::ranges::find(match.gone, o) != match.gone.end()) continue;
        const bool in_scratch = buffer_kind(program_, rank_, o) == BufferKind::scratch;
        (in_scratch ? scratch : callers) = true;
      }
    }
    return scratch && callers;
  }

  Fused merge(const Rule& rule, const Match& match, Number left, Number right, Meet where) {
    const Number right_part = order_.first_part(right);
    const uint32_t operands = own_operands(left);
    matcher_.build(rule, match, view(right), pool_[operands]);
    const bool right_counts = rule.form == Form::sum || rule.form == Form::through;
    const Live& sum = live_[right_counts ? right : left];
    const Live made{match.result,  match.reduce,
                    sum.summation, sum.complete,
                    false,         live_[rule.form == Form::rows ? right : left].applied,
                    operands,      last_read(rule, match, left, right)};
    const Number to = order_.merge(left, right, where);
    live_[to == left ? right : left].gone = true;
    live_[to] = made;
    fused_ = true;
    ++fired_[static_cast<size_t>(&rule - rules().data())];
    switch (rule.form) {
      case Form::join: {
        // Only grown: what is in common with earlier ops lies in the new part. Where the op also
        // moves, the others may have more, too; of a long one the next round looks at them, as
        // doing so for each part that is added takes the cube of their number.
        const bool few = pool_[operands].dsts.size() <= kMaxLookedAtAgain;
        return {to, to == left || !few ? right_part : order_.first_part(to)};
      }
      case Form::queue:
      case Form::through:
      case Form::retarget:
        return {to, order_.first_part(to)};
      default:
        return {to, kNoOp};
    }
  }

  /// Of the op that two are about to become. In a long chain of moves all but the first read only
  /// what is gone, and are not looked at again for each that is added.
  Number last_read(const Rule& rule, const Match& match, Number left, Number right) const {
    if (rule.form != Form::through || match.flow.uses != view(right).srcs.size()) return kNoOp;
    return live_[left].last_read != kNoOp ? live_[left].last_read : order_.last_part(left);
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
  void write_back(std::vector<Op>& ops, const std::vector<OpRange>& runs) {
    Op *to = ops.data(), *from = to;
    for (const OpRange& run : runs) {
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

  Op fused_op(const OpRange& run, Number n) {
    const Live& live = live_[n];
    Op op = run_ops_[n - run.first];
    if (live.operands == kNone) return op;
    op.kind = live.kind;
    op.reduce = live.reduce;
    op.summation = live.summation;
    op.complete = live.complete;
    op.applied = live.applied;
    additions_.set_operands(op, pool_[live.operands].dsts, pool_[live.operands].srcs);
    op.locations = all_locations(run, n);
    return op;
  }

  Slice all_locations(const OpRange& run, Number n) {
    locations_.clear();
    order_.each_part(n, [&](Number part) {
      const std::span<const Location> from =
          program_.locations.of(run_ops_[part - run.first].locations);
      locations_.insert(locations_.end(), from.begin(), from.end());
    });
    return additions_.locations.append(locations_);
  }

  Program& program_;
  Additions& additions_;
  const OpLimits limits_;
  OpRanges runs_;
  Order order_;
  Matcher matcher_;
  ScratchReads reads_;
  bool alone_ = true;
  uint32_t rank_ = 0;
  Number run_first_ = kNoOp;
  std::vector<Live> live_;      ///< by op number, of ops in runs
  std::vector<Number> latest_;  ///< by place and kind
  std::vector<Operands> pool_;
  uint32_t used_ = 0;  ///< of pool_, by this rank
  bool fused_ = false;
  std::vector<uint64_t> fired_;  ///< by rule
  uint64_t tried_ = 0;
  std::vector<Op> run_ops_;  ///< of the run being written back
  std::vector<Location> locations_;
};

/// Fuses ranks beside each other. Returns those that must be done alone, in order.
std::vector<uint32_t> fuse_side_by_side(Program& program, Fuser& first, PassContext& context,
                                        RankRange all, FuseStats& stats) {
  std::vector<char> waits(program.ranks.size(), false);
  const auto run = [&](Fuser& fuser, RankRange ranks) {
    for (uint32_t r = ranks.begin; r < ranks.end; ++r) waits[r] = !fuser.run(r, false);
  };
  if (context.threads == 1) {
    run(first, all);
  } else {
    std::mutex adding;
    work_on_ranks(program, context, all, [&](RankWork& work) {
      Fuser fuser(program, work.additions, context.limits);
      run(fuser, work.ranks);
      const std::lock_guard lock(adding);
      stats.add(fuser.fired(), fuser.tried());
      return true;
    });
  }
  std::vector<uint32_t> waiting;
  for (uint32_t r = all.begin; r < all.end; ++r) {
    if (waits[r]) waiting.push_back(r);
  }
  return waiting;
}

uint64_t count_ops(const Program& program) {
  uint64_t ops = 0;
  for (const Rank& rank : program.ranks) ops += rank.ops.size();
  return ops;
}

}  // namespace

void FuseStats::add(const std::vector<uint64_t>& more, uint64_t more_tried) {
  tried += more_tried;
  fired.resize(more.size());
  for (size_t i = 0; i < more.size(); ++i) fired[i] += more[i];
}

/// The first rank shows whether the program's scratch has to be looked at, for which ranks must
/// come one by one. Ranks that need that unlike the first come last.
FuseStats fuse_ops(Program& program, const OpLimits& limits, uint32_t threads) {
  Diagnostics none;
  PassContext context{
      .diagnostics = none, .limits = limits, .threads = thread_count(program, threads)};
  FuseStats stats;
  stats.before = count_ops(program);
  Additions additions(program, false);
  Fuser fuser(program, additions, limits);
  const RankRange others{1, static_cast<uint32_t>(program.ranks.size())};
  if (others.end > 0) fuser.run(0, true);
  if (others.end > 1 && !fuser.asked_for_reads()) {
    for (const uint32_t r : fuse_side_by_side(program, fuser, context, others, stats)) {
      fuser.run(r, true);
    }
  } else {
    for (uint32_t r = 1; r < others.end; ++r) fuser.run(r, true);
  }
  stats.add(fuser.fired(), fuser.tried());
  stats.after = count_ops(program);
  return stats;
}

bool run_fuse(Program& program, PassContext& context) {
  if (!program.launch.fuse) return true;
  const FuseStats stats = fuse_ops(program, context.limits, context.threads);
  const uint32_t dropped = drop_untouched_scratch(program);
  if (context.record == nullptr) return true;
  for (size_t i = 0; i < stats.fired.size(); ++i) {
    context.count(print_rule(rules()[i]), stats.fired[i]);
  }
  context.count("scratch buffers dropped", dropped);
  return true;
}

}  // namespace mscclc
