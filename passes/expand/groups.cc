// groups: a group of blocks acts as one block with more threads. Data ops become one op per block,
// each with its part; synchronising and port ops stay in the first block; a group of one block is
// that block.
//
//   group 0..2 {                              tb 0 { wait ch }
//     wait ch                                 tb 0 { barrier 0..2 }  tb 1 { barrier 0..2 }
//     copy output[0] <- input[0]       =>     tb 0 { copy output[0] <- input[0] part: [0, 2] }
//   }                                         tb 1 { copy output[0] <- input[0] part: [1, 2] }
//
// Where one block would need a `sync` for its threads to agree about what has been waited for or
// is to be published, the group needs a barrier, which is added here (under `auto_sync: false` it
// is an error that no `sync` of the group stands there); conflicts about data are left to `sync`,
// which compares the parts.
#include <fmt/format.h>

#include <algorithm>

#include "ir/report/op_error.h"
#include "passes/framework/inserts.h"
#include "passes/framework/passes.h"
#include "passes/sync/check_order.h"

namespace mscclc {
namespace {

bool publishes(const OpInfo& row, const Op& op) {
  return (row.has(kSignals) || row.has(kReleases) || row.has(kNotifiesFlags)) && !op.relaxed;
}
bool awaits(const OpInfo& row) {
  return row.has(kWaits) || row.has(kAcquires) || row.has(kFlushes) || row.has(kAwaitsFlags);
}

/// A group of two blocks or more, and what its blocks still owe each other.
struct Crew {
  std::vector<uint32_t> blocks;
  Slice operands;       ///< those of a barrier of all blocks
  uint32_t waited = 0;  ///< time of the last wait by the first block; 0: none
  uint32_t waited_loop = kNone;
  bool publishes_in_loop = false;  ///< in the pipeline at hand
  Op waiter;                       ///< the last op by which the first block has waited
};

/// Expands one rank's list. Time counts ops; `met(b, c)` is the time up to which block b knows, by
/// barriers, that block c has done its work.
class GroupExpander {
 public:
  GroupExpander(Program& program, Diagnostics& diagnostics)
      : program_(program), diagnostics_(diagnostics) {}

  bool run(uint32_t rank) {
    Rank& here = program_.ranks[rank];
    const auto in_group = [](const Op& op) { return op.group != kNone; };
    if (std::none_of(here.ops.begin(), here.ops.end(), in_group)) return true;
    start(rank);
    for (const Op& op : here.ops) {
      if (op.loop != loop_) enter_loop(op.loop);
      if (!expand(op)) return false;
    }
    enter_loop(kNone);
    here.ops.swap(out_);
    if (!inserts_.empty()) inserts_.merge(here.ops);
    return !missing_;
  }
  uint64_t barriers() const { return barriers_; }

 private:
  void start(uint32_t rank) {
    rank_ = rank;
    Rank& here = program_.ranks[rank];
    out_.clear();
    out_.reserve(here.ops.size() * 2);
    inserts_.clear();
    crews_.clear();
    for (const uint32_t group : seen_) crew_of_[group] = kNone;
    seen_.clear();
    crew_of_.resize(program_.groups.size(), kNone);
    waiting_.clear();
    highest_ = 0;
    loop_ = kNone;
    now_ = 0;
    for (const Op& op : here.ops) {
      if (op.group != kNone) crew_of(op.group);
    }
    here.blocks = std::max(count_blocks(here), highest_ + 1);
    worked_.assign(here.blocks, 0);
    worked_loop_.assign(here.blocks, kNone);
    worker_.assign(worked_.size(), {});
    met_.assign(size_t{here.blocks} * here.blocks, 0);
  }

  /// The crew of a group; groups of the same blocks share one.
  uint32_t crew_of(uint32_t group) {
    if (crew_of_[group] != kNone) return crew_of_[group];
    seen_.push_back(group);
    std::vector<uint32_t> blocks;
    for (const int64_t b : program_.values(program_.groups[group])) {
      blocks.push_back(static_cast<uint32_t>(b));
      highest_ = std::max(highest_, blocks.back());
    }
    const auto same = [&](const Crew& crew) { return crew.blocks == blocks; };
    const auto found = std::find_if(crews_.begin(), crews_.end(), same);
    crew_of_[group] = static_cast<uint32_t>(found - crews_.begin());
    if (found == crews_.end()) crews_.emplace_back().blocks = std::move(blocks);
    return crew_of_[group];
  }

  bool expand(Op op) {
    const OpInfo& row = info(op.kind);
    if (op.group == kNone) return expand_block(op, row), true;
    const uint32_t crew = crew_of(op.group);
    op.group = kNone;
    const std::vector<uint32_t>& blocks = crews_[crew].blocks;
    if (blocks.size() == 1) {
      op.block = blocks[0];
      return expand_block(op, row), true;
    }
    if (op.kind == OpKind::sync) return meet(crew, op.loop), true;
    if (op.kind == OpKind::barrier) return expand_barrier(op, blocks), true;
    if (!row.moves_data() || channel_kind(program_, rank_, op) == ChannelKind::port) {
      expand_first(op, row, crew);
      return true;
    }
    return expand_parts(op, row, crew);
  }

  /// An op of one block stays what it is.
  void expand_block(const Op& op, const OpInfo& row) {
    if (!row.has(kSyncs)) settle_waits(op.block, op);
    note(op, row, op.block);
    out_.push_back(op);
  }

  /// Each block of the group arrives.
  void expand_barrier(Op op, const std::vector<uint32_t>& blocks) {
    for (const uint32_t b : blocks) {
      op.block = b;
      out_.push_back(op);
    }
  }

  /// Synchronising and port ops: the first block does them for all.
  void expand_first(Op op, const OpInfo& row, uint32_t crew) {
    op.block = crews_[crew].blocks[0];
    settle_waits(op.block, op);
    if (publishes(row, op)) settle_work(crew, op);
    note(op, row, op.block);
    if (awaits(row)) {
      if (crews_[crew].waited == 0) waiting_.push_back(crew);
      crews_[crew].waited = now_;
      crews_[crew].waited_loop = op.loop;
      crews_[crew].waiter = op;
    }
    if (publishes(row, op)) crews_[crew].publishes_in_loop = true;
    out_.push_back(op);
  }

  bool expand_parts(Op op, const OpInfo& row, uint32_t crew) {
    if (op.parts != 0) {
      diagnostics_.error("part-in-group", span_of(program_, op),
                         fmt::format("{} has a part already, but stands in a group",
                                     describe_op(program_, rank_, op)));
      return false;
    }
    const size_t count = crews_[crew].blocks.size();
    for (size_t i = 0; i < count; ++i) settle_waits(crews_[crew].blocks[i], op);
    op.parts = static_cast<uint16_t>(count);
    for (size_t i = 0; i < count; ++i) {
      op.block = crews_[crew].blocks[i];
      op.part = static_cast<uint16_t>(i);
      note(op, row, op.block);
      out_.push_back(op);
    }
    return true;
  }

  void note(const Op& op, const OpInfo& row, uint32_t block) {
    ++now_;
    if (!row.moves_data()) return;
    worked_[block] = now_;
    worked_loop_[block] = op.loop;
    worker_[block] = op;
  }

  /// Before block b goes on: it meets the crews whose first block has waited for all of them.
  void settle_waits(uint32_t b, const Op& op) {
    for (size_t k = waiting_.size(); k-- > 0;) {  // meeting takes a crew off the list
      const Crew& crew = crews_[waiting_[k]];
      if (!owes_meeting(crew, b)) continue;
      report_missing(op, crew.waiter, "all blocks of the group must come after this");
      meet(waiting_[k], crew.waited_loop == loop_ ? loop_ : kNone);
    }
  }

  bool owes_meeting(const Crew& crew, uint32_t b) const {
    const bool member = std::find(crew.blocks.begin(), crew.blocks.end(), b) != crew.blocks.end();
    return member && b != crew.blocks[0] && met(b, crew.blocks[0]) < crew.waited;
  }

  /// Before the first block publishes: what the others have done must come before it.
  void settle_work(uint32_t c, const Op& op) {
    const uint32_t first = crews_[c].blocks[0];
    bool here = false, earlier = false;
    for (const uint32_t b : crews_[c].blocks) {
      if (b == first || worked_[b] <= met(first, b)) continue;
      (worked_loop_[b] == op.loop ? here : earlier) = true;
      report_missing(op, worker_[b], "what another block has done must be published here");
    }
    if (here || earlier) meet(c, here ? op.loop : kNone);
  }

  /// Under `auto_sync: false`: the blocks of a group must meet between two ops.
  void report_missing(const Op& op, const Op& cause, const char* why) {
    if (program_.launch.auto_sync) return;
    order::report_missing_order(program_, rank_, cause, op,
                                "a 'sync' of the group is missing before this op", why,
                                diagnostics_);
    missing_ = true;
  }

  /// At the edge of a pipeline: its last ops and its first ones of the next round follow each
  /// other, so what is still open between them is met at the end of the body.
  void enter_loop(uint32_t loop) {
    if (loop_ != kNone) {
      for (uint32_t c = 0; c < crews_.size(); ++c) {
        if (const Op* open = find_open(crews_[c])) {
          report_missing(*open, *open, "the next round must come after this one");
          meet(c, loop_);
        }
      }
    }
    for (Crew& crew : crews_) crew.publishes_in_loop = false;
    loop_ = loop;
    loop_begin_ = static_cast<uint32_t>(out_.size());
    loop_time_ = ++now_;
  }

  /// The op that some block of the crew has not yet passed, or nullptr.
  const Op* find_open(const Crew& crew) const {
    const uint32_t first = crew.blocks[0];
    for (const uint32_t b : crew.blocks) {
      if (b == first || worked_loop_[b] != loop_) continue;
      const bool waited = crew.waited != 0 && crew.waited_loop == loop_;
      if (waited && met(b, first) < crew.waited) return &crew.waiter;
      if (crew.publishes_in_loop && worked_[b] > met(first, b)) return &worker_[b];
    }
    return nullptr;
  }

  /// All blocks of a crew meet: here, or, if `loop` is not the pipeline at hand, in front of it.
  void meet(uint32_t c, uint32_t loop) {
    ++now_;
    ++barriers_;
    Op op;
    op.kind = OpKind::barrier;
    op.loop = loop;
    op.operands = barrier_operands(c);
    op.dsts = static_cast<uint16_t>(crews_[c].blocks.size());
    for (const uint32_t b : crews_[c].blocks) {
      op.block = b;
      if (loop == loop_) {
        out_.push_back(op);
      } else {
        inserts_.add(loop_begin_, Inserts::before_loop, op);
      }
    }
    const uint32_t time = loop == loop_ ? now_ : loop_time_;
    learn(crews_[c].blocks, time);
    if (crews_[c].waited == 0 || crews_[c].waited > time) return;
    crews_[c].waited = 0;
    waiting_.erase(std::find(waiting_.begin(), waiting_.end(), c));
  }

  uint32_t barrier_operands(uint32_t c) {
    Crew& crew = crews_[c];
    if (crew.operands.count == 0) {
      std::vector<Operand> sorted;
      for (const uint32_t b : crew.blocks) sorted.push_back({.first = b});
      std::ranges::sort(sorted, {}, &Operand::first);
      crew.operands = program_.operands.append(sorted);
    }
    return crew.operands.first;
  }

  /// After a barrier at `time` each of its blocks knows what any of them knew.
  void learn(const std::vector<uint32_t>& blocks, uint32_t time) {
    const size_t n = worked_.size();
    joined_.assign(n, 0);
    for (const uint32_t b : blocks) {
      for (size_t k = 0; k < n; ++k) joined_[k] = std::max(joined_[k], met_[b * n + k]);
    }
    for (const uint32_t b : blocks) joined_[b] = std::max(joined_[b], time);
    for (const uint32_t b : blocks) std::copy(joined_.begin(), joined_.end(), &met_[b * n]);
  }

  uint32_t met(uint32_t b, uint32_t c) const { return met_[b * worked_.size() + c]; }

  Program& program_;
  Diagnostics& diagnostics_;
  uint32_t rank_ = 0, highest_ = 0, now_ = 0;
  uint32_t loop_ = kNone, loop_begin_ = 0, loop_time_ = 0;  ///< the pipeline at hand, if any
  std::vector<Op> out_;
  Inserts inserts_;
  std::vector<Crew> crews_;
  std::vector<uint32_t> crew_of_, seen_;  ///< crew of each group; groups of this rank
  std::vector<uint32_t> waiting_;         ///< crews that have waited and not met since
  std::vector<uint32_t> worked_, worked_loop_, met_, joined_;
  std::vector<Op> worker_;  ///< by block: its last data op
  uint64_t barriers_ = 0;   ///< added, of all ranks
  bool missing_ = false;    ///< under auto_sync: false: a meeting that must be there
};

}  // namespace

bool run_groups(Program& program, PassContext& context) {
  if (program.groups.empty()) return true;
  GroupExpander expander(program, context.diagnostics);
  for (uint32_t r = 0; r < program.ranks.size(); ++r) {
    if (!expander.run(r)) return false;
  }
  context.count("barriers inserted", expander.barriers());
  return true;
}

}  // namespace mscclc
