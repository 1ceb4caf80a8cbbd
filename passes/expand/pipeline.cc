// pipeline: keeps the rounds of a pipeline apart where scratch holds a few units instead of whole
// chunks (`buffer s[1] units: 2`). Round i uses unit i % 2, so the block that fills it must wait
// until those that used it in round i - 2 are done. A semaphore counts the free units: it begins
// with all of them, the filling block takes one in each round, a block that is done gives it back.
//
//   tb 0 { copy s[0] <- input[0] }            tb 0 { acquire free ; copy s[0] <- input[0] }
//   tb 1 { put up.t[0] <- s[0] }        =>    tb 1 { put up.t[0] <- s[0] ; release free }
//
// The first block is then up to two rounds ahead of the second, and no more: the first rounds take
// what is there, the last ones leave all free for the next call, however many rounds there are.
// That a round's unit is filled before it is read is left to `sync`, as in any pipeline. Units that
// other ranks fill are theirs to ask for, by signals.
//
// What the author's semaphores order already, or those of an earlier run of this pass, gets no
// other (unit_order.h). Under `launch auto_sync: false` nothing is added: what is missing is an
// error.
#include <fmt/format.h>

#include <algorithm>

#include "ir/report/op_error.h"
#include "passes/expand/unit_order.h"
#include "passes/framework/group_run.h"
#include "passes/framework/inserts.h"
#include "passes/framework/passes.h"
#include "passes/sync/check_order.h"

namespace mscclc::expand {
namespace {

/// A block that fills units and one that uses them after.
struct Credit {
  uint32_t filler, user;          ///< blocks
  uint32_t first_fill, last_use;  ///< ops
  uint32_t units;
};

class CreditFinder {
 public:
  CreditFinder(Program& program, PassContext& context)
      : program_(program), context_(context), adds_(program.launch.auto_sync), order_(program) {}

  bool run(uint32_t rank) {
    Rank& here = program_.ranks[rank];
    rank_ = rank;
    inserts_.clear();
    keys_ = 0;
    bool complete = true;
    for (uint32_t b = kFirstScratch; b < here.buffers.size(); ++b) {
      if (here.buffers[b].units != 0) complete &= run_buffer(b);
    }
    if (!inserts_.empty()) inserts_.merge(here.ops);
    return complete;
  }

 private:
  /// An op on a chunk of the buffer at hand.
  struct Use {
    uint32_t chunk, op;
    auto operator<=>(const Use&) const = default;
  };

  bool run_buffer(uint32_t buffer) {
    find_uses(buffer);
    pairs_.clear();
    for (auto chunk = uses_.begin(); chunk != uses_.end();) {
      const auto end = std::find_if(chunk, uses_.end(),
                                    [&](const Use& use) { return use.chunk != chunk->chunk; });
      for (auto use = chunk; use != end; ++use) {
        if (ops()[use->op].loop != ops()[chunk->op].loop) {
          return report_two(buffer, chunk->op, use->op);
        }
      }
      add_pairs(buffer, {chunk, end});
      chunk = end;
    }
    return settle_loops(buffer);
  }

  const std::vector<Op>& ops() const { return program_.ranks[rank_].ops; }

  /// The rank's own ops on each chunk, in written order.
  void find_uses(uint32_t buffer) {
    uses_.clear();
    for (uint32_t i = 0; i < ops().size(); ++i) {
      if (!info(ops()[i].kind).moves_data()) continue;
      for (const Operand& o : program_.all_operands(ops()[i])) {
        if (o.channel == kNone && o.buffer == buffer) uses_.push_back({o.first, i});
      }
    }
    std::ranges::sort(uses_);
    const auto repeated = std::ranges::unique(uses_);
    uses_.erase(repeated.begin(), repeated.end());
  }

  bool fills(const Op& op, uint32_t buffer, uint32_t chunk) const {
    const auto same = [&](const Operand& o) {
      return o.channel == kNone && o.buffer == buffer && o.first == chunk;
    };
    return std::ranges::any_of(program_.dsts(op), same) &&
           std::ranges::none_of(program_.srcs(op), same);
  }

  /// The op that fills a chunk (several, if a group does) with each of the others.
  void add_pairs(uint32_t buffer, std::span<const Use> uses) {
    const Op& leader = ops()[uses[0].op];
    if (!fills(leader, buffer, uses[0].chunk)) return;  // other ranks do
    size_t leaders = 1;
    while (leaders < uses.size() && leader.parts != 0 &&
           ops()[uses[leaders].op].operands == leader.operands) {
      ++leaders;
    }
    for (size_t l = 0; l < leaders; ++l) {
      for (size_t u = leaders; u < uses.size(); ++u) {
        const bool same_block = ops()[uses[l].op].block == ops()[uses[u].op].block;
        if (!same_block) pairs_.push_back({uses[l].op, uses[u].op});  // else: its own rounds
      }
    }
  }

  /// Pipeline by pipeline: adds the credits that are missing, or reports them.
  bool settle_loops(uint32_t buffer) {
    credits_.clear();
    const uint32_t units = program_.ranks[rank_].buffers[buffer].units;
    const auto loop = [this](const UnitUse& pair) { return ops()[pair.fill].loop; };
    std::ranges::stable_sort(pairs_, {}, loop);
    for (auto begin = pairs_.begin(); begin != pairs_.end();) {
      const auto end = std::ranges::find_if(
          begin, pairs_.end(), [&](const UnitUse& pair) { return loop(pair) != loop(*begin); });
      std::vector<UnitUse> pairs(begin, end);
      const bool ended = order_.find(rank_, units, pairs);
      for (const UnitUse& pair : pairs) {
        if (!pair.ordered) add_credit(pair.fill, pair.use, units);
      }
      if (!ended && !adds_) credits_.clear();  // `sync` reports that
      begin = end;
    }
    for (const Credit& credit : credits_) {
      if (adds_) {
        insert(credit);
      } else {
        report_missing(buffer, credit);
      }
    }
    return adds_ || credits_.empty();
  }

  void add_credit(uint32_t fill, uint32_t use, uint32_t units) {
    const uint32_t filler = ops()[fill].block, user = ops()[use].block;
    for (Credit& credit : credits_) {
      const bool same_loop = ops()[credit.first_fill].loop == ops()[fill].loop;
      if (credit.filler != filler || credit.user != user || !same_loop) continue;
      credit.first_fill = std::min(credit.first_fill, fill);
      credit.last_use = std::max(credit.last_use, use);
      return;
    }
    credits_.push_back({filler, user, fill, use, units});
  }

  void insert(const Credit& credit) {
    Rank& here = program_.ranks[rank_];
    if (name_ == kNone) name_ = unused_name(program_, "free");
    const int64_t key = keys_++;
    here.semaphores.push_back(
        {.label = {name_, program_.append({&key, 1})}, .initial = credit.units, .declared = {}});
    context_.count("semaphores inserted");
    const auto semaphore = static_cast<uint32_t>(here.semaphores.size() - 1);
    // The parts of a group's op stay side by side.
    inserts_.add(group_run(ops(), credit.first_fill).begin, Inserts::before,
                 make(OpKind::acquire, credit.first_fill, semaphore));
    inserts_.add(group_run(ops(), credit.last_use).end - 1, Inserts::after,
                 make(OpKind::release, credit.last_use, semaphore));
  }

  Op make(OpKind kind, uint32_t at, uint32_t semaphore) {
    Op made;
    made.kind = kind;
    made.block = ops()[at].block;
    made.loop = ops()[at].loop;
    made.locations = ops()[at].locations;
    const Operand operand{.first = semaphore};
    program_.set_operands(made, {&operand, 1}, {});
    return made;
  }

  void report_missing(uint32_t buffer, const Credit& credit) {
    const std::string name(program_.name_of(program_.ranks[rank_].buffers[buffer].name));
    order::report_missing_order(
        program_, rank_, ops()[credit.last_use], ops()[credit.first_fill],
        fmt::format("nothing makes this op wait until a unit of '{}' is free again", name),
        fmt::format("uses the unit, and must have done so {} rounds before; a semaphore of {} "
                    "orders that, released after this op and acquired before the other one",
                    credit.units, credit.units),
        context_.diagnostics);
  }

  bool report_two(uint32_t buffer, uint32_t first, uint32_t second) {
    const Buffer& b = program_.ranks[rank_].buffers[buffer];
    Diagnostic& d = context_.diagnostics.error(
        "units", span_of(program_, ops()[second]),
        fmt::format("'{}' holds units and is used in two pipelines of rank {}",
                    program_.name_of(b.name), rank_));
    d.notes.push_back({"the other one is here", span_of(program_, ops()[first])});
    return false;
  }

  Program& program_;
  PassContext& context_;
  uint32_t rank_ = 0;
  NameId name_ = kNone;
  int64_t keys_ = 0;
  const bool adds_;  ///< what is missing; else it is reported
  UnitOrder order_;
  std::vector<Use> uses_;
  std::vector<UnitUse> pairs_;
  std::vector<Credit> credits_;
  Inserts inserts_;
};

bool holds_units(const Program& program) {
  return std::ranges::any_of(program.ranks, [](const Rank& rank) {
    return std::ranges::any_of(rank.buffers, [](const Buffer& b) { return b.units != 0; });
  });
}

}  // namespace
}  // namespace mscclc::expand

namespace mscclc {

bool run_pipeline(Program& program, PassContext& context) {
  if (!expand::holds_units(program)) return true;
  expand::CreditFinder finder(program, context);
  bool complete = true;
  for (uint32_t r = 0; r < program.ranks.size(); ++r) {
    if (!settle_blocks(program, r, "pipeline", context.diagnostics)) return false;
    complete &= finder.run(r);
  }
  return complete;
}

}  // namespace mscclc
