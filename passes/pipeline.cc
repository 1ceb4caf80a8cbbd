// pipeline: keeps the rounds of a pipeline apart where scratch holds a few units instead of whole
// chunks (`buffer s[1] units: 2`). Round i uses unit i % 2, so whoever fills it must wait until
// those who used it in round i - 2 are done. A semaphore counts the free units: it begins with all
// of them, the filling block takes one in each round, a block that is done gives it back.
//
//   tb 0 { copy s[0] <- input[0] }            tb 0 { acquire free ; copy s[0] <- input[0] }
//   tb 1 { put up.t[0] <- s[0] }        =>    tb 1 { put up.t[0] <- s[0] ; release free }
//
// The first block is then up to two rounds ahead of the second, and no more: the first rounds take
// what is there, the last ones leave all free for the next call, however many rounds there are.
// That a round's unit is filled before it is read is left to `sync`, as in any pipeline. Units that
// other ranks fill are theirs to ask for, by signals.
#include <fmt/format.h>

#include <algorithm>

#include "ir/op_error.h"
#include "passes/group_run.h"
#include "passes/inserts.h"
#include "passes/passes.h"

namespace mscclc {
namespace {

/// A block that fills units and one that uses them after.
struct Credit {
  uint32_t filler, user;          ///< blocks
  uint32_t first_fill, last_use;  ///< ops
  uint32_t units;
};

class CreditFinder {
 public:
  CreditFinder(Program& program, PassContext& context) : program_(program), context_(context) {}

  bool run(uint32_t rank) {
    Rank& here = program_.ranks[rank];
    rank_ = rank;
    inserts_.clear();
    keys_ = 0;
    for (uint32_t b = kFirstScratch; b < here.buffers.size(); ++b) {
      if (here.buffers[b].units != 0 && !run_buffer(b)) return false;
    }
    if (!inserts_.empty()) inserts_.merge(here.ops);
    return true;
  }

 private:
  bool run_buffer(uint32_t buffer) {
    credits_.clear();
    for (uint32_t chunk = 0; chunk < program_.ranks[rank_].buffers[buffer].chunks; ++chunk) {
      find_uses(buffer, chunk);
      for (const uint32_t op : uses_) {
        if (ops()[op].loop != ops()[uses_[0]].loop) return report_two(buffer, uses_[0], op);
      }
      add_credits(buffer);
    }
    for (const Credit& credit : credits_) insert(credit);
    return true;
  }

  const std::vector<Op>& ops() const { return program_.ranks[rank_].ops; }

  /// The rank's own ops on a chunk, in written order.
  void find_uses(uint32_t buffer, uint32_t chunk) {
    uses_.clear();
    for (uint32_t i = 0; i < ops().size(); ++i) {
      if (info(ops()[i].kind).moves_data() && touches(ops()[i], buffer, chunk)) uses_.push_back(i);
    }
  }

  bool touches(const Op& op, uint32_t buffer, uint32_t chunk) const {
    const Operand* o = program_.operands.data() + op.operands;
    return std::any_of(o, o + op.dsts + op.srcs,
                       [&](const Operand& operand) { return is(operand, buffer, chunk); });
  }

  static bool is(const Operand& o, uint32_t buffer, uint32_t chunk) {
    return o.channel == kNone && o.buffer == buffer && o.first == chunk;
  }

  bool fills(const Op& op, uint32_t buffer, uint32_t chunk) const {
    const auto srcs = program_.srcs(op), dsts = program_.dsts(op);
    const auto same = [&](const Operand& o) { return is(o, buffer, chunk); };
    return std::ranges::any_of(dsts, same) && std::ranges::none_of(srcs, same);
  }

  /// Between the blocks of the op that fills the chunk (several, if a group does) and all others.
  void add_credits(uint32_t buffer) {
    if (uses_.empty()) return;
    const Op& leader = ops()[uses_[0]];
    const uint32_t chunk = chunk_of(leader, buffer);
    if (!fills(leader, buffer, chunk)) return;  // other ranks do
    size_t leaders = 1;
    while (leaders < uses_.size() && leader.parts != 0 &&
           ops()[uses_[leaders]].operands == leader.operands) {
      ++leaders;
    }
    for (size_t l = 0; l < leaders; ++l) {
      for (size_t u = leaders; u < uses_.size(); ++u) add_credit(uses_[l], uses_[u], buffer);
    }
  }

  uint32_t chunk_of(const Op& op, uint32_t buffer) const {
    const auto dsts = program_.dsts(op);
    const auto own = std::ranges::find_if(
        dsts, [&](const Operand& o) { return o.channel == kNone && o.buffer == buffer; });
    return own == dsts.end() ? kNone : own->first;
  }

  void add_credit(uint32_t fill, uint32_t use, uint32_t buffer) {
    const uint32_t filler = ops()[fill].block, user = ops()[use].block;
    if (filler == user) return;  // ordered by its own rounds
    for (Credit& credit : credits_) {
      const bool same_loop = ops()[credit.first_fill].loop == ops()[fill].loop;
      if (credit.filler != filler || credit.user != user || !same_loop) continue;
      credit.first_fill = std::min(credit.first_fill, fill);
      credit.last_use = std::max(credit.last_use, use);
      return;
    }
    const uint32_t units = program_.ranks[rank_].buffers[buffer].units;
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
    inserts_.add(group_run(ops(), credit.last_use).end - 1, Inserts::behind,
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
  std::vector<uint32_t> uses_;
  std::vector<Credit> credits_;
  Inserts inserts_;
};

bool holds_units(const Program& program) {
  return std::ranges::any_of(program.ranks, [](const Rank& rank) {
    return std::ranges::any_of(rank.buffers, [](const Buffer& b) { return b.units != 0; });
  });
}

}  // namespace

bool run_pipeline(Program& program, PassContext& context) {
  if (!program.launch.auto_sync || !holds_units(program)) return true;
  CreditFinder finder(program, context);
  for (uint32_t r = 0; r < program.ranks.size(); ++r) {
    if (!settle_blocks(program, r, "pipeline", context.diagnostics) || !finder.run(r)) return false;
  }
  return true;
}

}  // namespace mscclc
