#include "tests/mutate/mutate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "ir/print/print.h"

namespace mscclc {
namespace {

constexpr std::array<std::string_view, kMutations> kNames = {
    "drop",          "duplicate",    "move",   "swap",   "retarget",    "untie",
    "relax",         "chunk",        "count",  "buffer", "drop_source", "shrink_chunks",
    "shrink_copies", "shrink_units", "credit", "slot"};

/// One operand of one op.
struct Use {
  uint32_t rank, op, operand;
  auto operator<=>(const Use&) const = default;
};

/// What is left to chance in a change; the same on all ranks.
struct Draws {
  uint64_t a, b;
};

/// Makes one change in one program.
class Change {
 public:
  Change(Program& program, Mutation mutation, Draws draws)
      : program_(program), mutation_(mutation), draws_(draws) {}

  /// Changes op `i` of rank `r`; false if it is not for this change.
  bool apply(uint32_t r, uint32_t i) {
    std::vector<Op>& ops = program_.ranks[r].ops;
    switch (mutation_) {
      case Mutation::drop:
        ops.erase(ops.begin() + i);
        return true;
      case Mutation::duplicate:
        ops.insert(ops.begin() + i, Op(ops[i]));
        return true;
      case Mutation::move:
        return move(ops, i, draws_.a % 2 == 0 ? 2 + draws_.b % 4 : -(2 + int64_t(draws_.b % 4)));
      case Mutation::swap:
        return move(ops, i, 1);
      case Mutation::retarget:
        return retarget(r, ops[i]);
      case Mutation::untie:
        return untie(r, i);
      case Mutation::relax:
        if (info(ops[i].kind).relaxed.empty()) return false;
        ops[i].relaxed ^= true;
        return true;
      case Mutation::count:
        return count(ops[i]);
      case Mutation::chunk:
      case Mutation::slot:
      case Mutation::buffer:
        return operand(r, ops[i]);
      case Mutation::drop_source:
        return drop_source(ops[i]);
      case Mutation::shrink_chunks:
      case Mutation::shrink_copies:
      case Mutation::shrink_units:
        return shrink(r, ops[i]);
      case Mutation::credit:
        return credit(r, i);
    }
    return false;
  }
  /// Takes away what `untie` has collected on all ranks.
  void finish() {
    std::sort(untied_.begin(), untied_.end());
    untied_.erase(std::unique(untied_.begin(), untied_.end()), untied_.end());
    for (auto use = untied_.rbegin(); use != untied_.rend(); ++use) remove(*use);
  }

 private:
  static bool alike(const Op& a, const Op& b) { return a.block == b.block && a.loop == b.loop; }

  bool move(std::vector<Op>& ops, uint32_t i, int64_t by) {
    const int64_t to = int64_t{i} + by;
    if (to < 0 || to >= int64_t(ops.size()) || !alike(ops[i], ops[to])) return false;
    const auto from = ops.begin() + i;
    by > 0 ? std::rotate(from, from + 1, ops.begin() + to + 1)
           : std::rotate(ops.begin() + to, from, from + 1);
    return true;
  }

  /// A copy of the op's operands that may be changed.
  std::vector<Operand> operands(const Op& op) const {
    const std::span<const Operand> all = program_.all_operands(op);
    return {all.begin(), all.end()};
  }
  void set(Op& op, const std::vector<Operand>& all, uint32_t dsts) {
    program_.set_operands(op, {all.data(), dsts}, {all.data() + dsts, all.size() - dsts});
  }

  bool retarget(uint32_t r, Op& op) {
    if (info(op.kind).moves_data() || op.dsts == 0) return false;
    std::vector<Operand> all = operands(op);
    Operand& o = all[draws_.a % all.size()];
    const Rank& rank = program_.ranks[r];
    const uint64_t choices = o.channel != kNone          ? rank.channels.size()
                             : info(op.kind).has(kMeets) ? block_offsets(rank).size() - 1
                                                         : rank.semaphores.size();
    uint32_t& target = o.channel != kNone ? o.channel : o.first;
    if (choices < 2) return false;
    target = static_cast<uint32_t>((target + 1 + draws_.b % (choices - 1)) % choices);
    set(op, all, op.dsts);
    return true;
  }

  /// All uses of a counter on one side, in the order of the giving, or taking, block.
  std::vector<Use> uses(uint32_t r, uint32_t effect, uint32_t target) const {
    std::vector<Use> found;
    const Rank& rank = program_.ranks[r];
    for (uint32_t i = 0; i < rank.ops.size(); ++i) {
      const OpInfo& row = info(rank.ops[i].kind);
      if ((row.effects & effect) == 0) continue;
      const auto dsts = program_.dsts(rank.ops[i]);
      for (uint32_t k = 0; k < dsts.size(); ++k) {
        const bool semaphore = row.has(kReleases) || row.has(kAcquires);
        if ((semaphore ? dsts[k].first : dsts[k].channel) == target) found.push_back({r, i, k});
      }
    }
    return found;
  }

  /// Notes the op's signals, or releases, and what takes them.
  bool untie(uint32_t r, uint32_t i) {
    const Op& op = program_.ranks[r].ops[i];
    const bool semaphore = op.kind == OpKind::release;
    if (!semaphore && op.kind != OpKind::signal) return false;
    const auto dsts = program_.dsts(op);
    for (uint32_t k = 0; k < dsts.size(); ++k) {
      if (draws_.a % 2 == 0 && k != draws_.b % dsts.size()) continue;  // one of them, or all
      const uint32_t own = semaphore ? dsts[k].first : dsts[k].channel;
      uint32_t taker = r, target = own;
      if (!semaphore) {
        taker = program_.ranks[r].channels[own].peer;
        target = program_.ranks[r].channels[own].partner;
      }
      const auto given = uses(r, semaphore ? kReleases : kSignals, own);
      const auto taken = uses(taker, semaphore ? kAcquires : kWaits, target);
      const size_t at = std::find(given.begin(), given.end(), Use{r, i, k}) - given.begin();
      if (at >= taken.size()) return false;
      untied_.push_back(given[at]);
      untied_.push_back(taken[at]);
    }
    return true;
  }
  void remove(const Use& use) {
    std::vector<Op>& ops = program_.ranks[use.rank].ops;
    Op& op = ops[use.op];
    std::vector<Operand> all = operands(op);
    all.erase(all.begin() + use.operand);
    if (all.empty()) {
      ops.erase(ops.begin() + use.op);
    } else {
      set(op, all, op.dsts - 1u);
    }
  }

  bool count(Op& op) {
    if (!info(op.kind).moves_data()) return false;
    std::vector<Operand> all = operands(op);
    for (Operand& o : all) {
      if (draws_.a % 2 == 0 && o.count > 1) {
        --o.count;
        o.first += draws_.b % 2;
      } else {
        ++o.count;
      }
    }
    set(op, all, op.dsts);
    return true;
  }

  /// Another chunk, slot or buffer for one operand.
  bool operand(uint32_t r, Op& op) {
    if (!info(op.kind).moves_data()) return false;
    std::vector<Operand> all = operands(op);
    Operand& o = all[draws_.a % all.size()];
    const Buffer& buffer = program_.buffer_of(r, o);
    if ((mutation_ == Mutation::slot) != (buffer.packets != PacketFormat::none) &&
        mutation_ != Mutation::buffer) {
      return false;
    }
    if (mutation_ == Mutation::buffer) {
      const bool far = o.channel != kNone && program_.ranks[r].channels[o.channel].peer != kNone;
      const Rank& owner = program_.ranks[far ? program_.owner_of(r, o) : r];
      if (owner.buffers.size() < 2) return false;
      const auto n = static_cast<uint32_t>(owner.buffers.size());
      o.buffer = static_cast<uint32_t>((o.buffer + 1 + draws_.b % (n - 1)) % n);
      o.first = std::min(o.first, std::max(owner.buffers[o.buffer].chunks, o.count) - o.count);
    } else {
      if (buffer.chunks < o.count + 1) return false;
      const uint32_t places = buffer.chunks - o.count + 1;
      o.first = static_cast<uint32_t>((o.first + 1 + draws_.b % (places - 1)) % places);
    }
    set(op, all, op.dsts);
    return true;
  }

  bool drop_source(Op& op) {
    if (!info(op.kind).has(kReduces) || op.srcs < 2) return false;
    std::vector<Operand> all = operands(op);
    all.erase(all.begin() + op.dsts + static_cast<int64_t>(draws_.a % op.srcs));
    set(op, all, op.dsts);
    return true;
  }

  /// The scratch that the op uses.
  bool shrink(uint32_t r, const Op& op) {
    if (!info(op.kind).moves_data()) return false;
    const std::vector<Operand> all = operands(op);
    const Operand& o = all[draws_.a % all.size()];
    if (o.buffer < kFirstScratch) return false;
    const bool far = o.channel != kNone && program_.ranks[r].channels[o.channel].peer != kNone;
    Buffer& buffer = program_.ranks[far ? program_.owner_of(r, o) : r].buffers[o.buffer];
    uint32_t& size = mutation_ == Mutation::shrink_chunks   ? buffer.chunks
                     : mutation_ == Mutation::shrink_copies ? buffer.copies
                                                            : buffer.units;
    if (size <= (mutation_ == Mutation::shrink_units ? 2u : 1u)) return false;
    --size;
    return true;
  }

  /// One more of what the op gives before a pipeline begins, or takes after it.
  bool credit(uint32_t r, uint32_t i) {
    const Op op = program_.ranks[r].ops[i];
    if (op.kind == OpKind::acquire || op.kind == OpKind::release) {
      const std::span<const Operand> dsts = program_.dsts(op);
      ++program_.ranks[r].semaphores[dsts[draws_.a % dsts.size()].first].initial;
      return true;
    }
    if (op.kind != OpKind::signal || op.loop != kNone) return false;
    const Operand end = program_.dsts(op)[draws_.a % op.dsts];
    const Channel& own = program_.ranks[r].channels[end.channel];
    for (const Use& use : uses(own.peer, kWaits, own.partner)) {
      const Op wait = program_.ranks[use.rank].ops[use.op];
      if (wait.loop != kNone || use.rank == r) continue;
      again(use.rank, use.op, program_.dsts(wait)[use.operand]);
      again(r, i, end);
      return true;
    }
    return false;
  }

  /// Does the op once more, for one target.
  void again(uint32_t r, uint32_t i, Operand target) {
    std::vector<Op>& ops = program_.ranks[r].ops;
    Op more = ops[i];
    set(more, {target}, 1);
    ops.insert(ops.begin() + i, more);
  }

  Program& program_;
  Mutation mutation_;
  Draws draws_;
  std::vector<Use> untied_;
};

}  // namespace

std::string_view name(Mutation mutation) { return kNames[static_cast<size_t>(mutation)]; }

std::optional<Mutant> Mutator::attempt() {
  const auto mutation = static_cast<Mutation>(random_() % kMutations);
  const auto ranks = static_cast<uint32_t>(program_.ranks.size());
  const auto r = static_cast<uint32_t>(random_() % ranks);
  const Rank& rank = program_.ranks[r];
  const Draws draws{random_() >> 8, random_() >> 8};
  const bool everywhere = random_() % 2 == 0;
  if (rank.ops.empty()) return std::nullopt;
  const auto i = static_cast<uint32_t>(random_() % rank.ops.size());
  Mutant mutant{mutation, {}, program_};
  Change change(mutant.program, mutation, draws);
  if (!change.apply(r, i)) return std::nullopt;
  for (uint32_t q = 0; everywhere && q < ranks; ++q) {
    const std::vector<Op>& ops = program_.ranks[q].ops;
    if (q == r || i >= ops.size() || ops[i].kind != rank.ops[i].kind) continue;
    change.apply(q, i);
  }
  change.finish();
  mutant.what = fmt::format("{} '{}' (op {} of rank {}, draws {} {}{})", name(mutation),
                            print_op(program_, r, rank.ops[i]), i, r, draws.a % 64, draws.b % 64,
                            everywhere ? ", on all ranks" : "");
  return mutant;
}

std::optional<Mutant> Mutator::next() {
  if (made_.empty()) made_.insert(print_ir(program_));
  for (int tries = 0; tries < 1000; ++tries) {
    std::optional<Mutant> mutant = attempt();
    if (mutant && made_.insert(print_ir(mutant->program)).second) return mutant;
  }
  return std::nullopt;
}

}  // namespace mscclc
