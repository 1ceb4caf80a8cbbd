#include "passes/prove/loops/loop_ties.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "passes/prove/loops/rates.h"
#include "passes/prove/model/premise.h"

namespace mscclc::proof {
namespace {

enum class CountKind : uint8_t { end, semaphore, barrier };
/// What it is, of which plan, its number, and a barrier's members.
using CountKey = std::tuple<CountKind, size_t, uint32_t, std::vector<uint32_t>>;

void note(std::vector<Use>& uses, uint32_t process, const Op& op, uint32_t index) {
  if (uses.empty() || uses.back().process != process) uses.push_back({process, {}});
  std::vector<Stretch>& stretches = uses.back().stretches;
  if (stretches.empty() || stretches.back().loop != op.loop) {
    stretches.push_back({op.loop, 0, index});
  }
  ++stretches.back().times;
}

/// Fills the counts, block by block.
class Reader {
 public:
  explicit Reader(const System& system) : system_(system), program_(system.program()) {
    for (uint32_t r = 0; r < system.ranks(); ++r) {
      const std::vector<Op>& ops = program_.ranks[r].ops;
      for (uint32_t i = 0; i < ops.size(); ++i) read(r, i, ops[i]);
    }
  }
  std::vector<Count> in_loops() {
    std::vector<Count> result;
    for (auto& [key, count] : counts_) {
      const auto loops = [](const Use& use) {
        return std::ranges::any_of(use.stretches, [](const Stretch& s) { return s.loop != kNone; });
      };
      if (std::ranges::none_of(count.givers, loops) && std::ranges::none_of(count.takers, loops)) {
        continue;
      }
      result.push_back(std::move(count));
    }
    return result;
  }

 private:
  void read(uint32_t rank, uint32_t index, const Op& op) {
    const OpInfo& row = info(op.kind);
    const uint32_t process = system_.block_process(rank, op.block);
    if (row.has(kMeets)) {
      Count& barrier = barrier_of(rank, index, op);
      note(barrier.givers, process, op, index);
      note(barrier.takers, process, op, index);
      return;
    }
    for (const Operand& o : program_.dsts(op)) {
      if (row.has(kSignals)) {
        const Channel& channel = program_.ranks[rank].channels[o.channel];
        if (channel.partner == kNone) continue;
        const uint32_t end = system_.end(channel.peer % system_.ranks(), channel.partner);
        note(count(CountKind::end, rank, index, end).givers, process, op, index);
      }
      if (row.has(kWaits)) {
        Count& end = count(CountKind::end, rank, index, system_.end(rank, o.channel));
        end.initial = program_.ranks[rank].channels[o.channel].credits;
        note(end.takers, process, op, index);
      }
      if (!row.has(kReleases) && !row.has(kAcquires)) continue;
      Count& semaphore = count(CountKind::semaphore, rank, index, system_.semaphore(rank, o.first));
      semaphore.initial = program_.ranks[rank].semaphores[o.first].initial;
      note(row.has(kReleases) ? semaphore.givers : semaphore.takers, process, op, index);
    }
  }

  Count& count(CountKind kind, uint32_t rank, uint32_t op, uint32_t number) {
    return counts_[{kind, part(rank, op), number, {}}];
  }
  Count& barrier_of(uint32_t rank, uint32_t index, const Op& op) {
    std::vector<uint32_t> members;
    for (const Operand& o : program_.dsts(op)) members.push_back(o.first);
    std::ranges::sort(members);
    Count& barrier = counts_[{CountKind::barrier, part(rank, index), rank, std::move(members)}];
    barrier.barrier = true;
    return barrier;
  }
  size_t part(uint32_t rank, uint32_t op) const {
    return static_cast<size_t>(&system_.part_of_op(rank, op) - system_.parts().data());
  }

  const System& system_;
  const Program& program_;
  std::map<CountKey, Count> counts_;
};

/// A loop that uses a count, and how often straight code has used it before.
struct LoopUse {
  Stretch stretch;
  uint64_t before = 0;
};

std::vector<LoopUse> loop_uses(const Use& use) {
  std::vector<LoopUse> uses;
  uint64_t before = 0;
  for (const Stretch& stretch : use.stretches) {
    if (stretch.loop == kNone) {
      before += stretch.times;
    } else {
      uses.push_back({stretch, before});
    }
  }
  return uses;
}

/// Compares the loops of one count's givers with those of its taker.
class Pairing {
 public:
  Pairing(const System& system, const Count& count, const Use& taker)
      : program_(system.program()), count_(count), taker_(taker), uses_(loop_uses(taker)) {}

  std::optional<Finding> run(std::vector<Tie>& ties) {
    given_.assign(uses_.size(), 0);
    before_.assign(uses_.size(), count_.initial);
    for (const Use& giver : count_.givers) {
      if (const auto finding = add(giver, ties)) return finding;
    }
    for (size_t j = 0; j < uses_.size(); ++j) {
      const Use& giver = count_.givers.front();
      if (!premise(Premise::rounds_give_what_they_take, given_[j] == uses_[j].stretch.times))
        return unpaired(giver, giver.stretches[0].op, j);
      if (!premise(Premise::given_before_the_loop, before_[j] >= uses_[j].before))
        return too_early(giver, j);
    }
    return std::nullopt;
  }

 private:
  std::optional<Finding> add(const Use& giver, std::vector<Tie>& ties) {
    const std::vector<LoopUse> uses = loop_uses(giver);
    if (uses.empty()) return std::nullopt;
    for (size_t j = 0; j < std::max(uses.size(), uses_.size()); ++j) {
      if (j >= uses.size() || j >= uses_.size() || !same_rate(loop(uses[j]), loop(uses_[j]))) {
        const LoopUse& at = uses[std::min(j, uses.size() - 1)];
        return unpaired(giver, at.stretch.op, std::min(j, uses_.size() - 1));
      }
      given_[j] += uses[j].stretch.times;
      before_[j] += uses[j].before;
      ties.push_back({giver.process, uses[j].stretch.loop, taker_.process, uses_[j].stretch.loop});
    }
    return std::nullopt;
  }
  const Loop& loop(const LoopUse& of_loop) const { return program_.loops[of_loop.stretch.loop]; }

  Finding at(const Use& giver, uint32_t op, size_t j) const {
    Finding finding;
    finding.kind = Finding::Kind::unpaired;
    finding.first = {giver.process, 0, op, 0};
    const uint32_t taken = j < uses_.size() ? uses_[j].stretch.op : taker_.stretches[0].op;
    finding.second = {taker_.process, 0, taken, 0};
    return finding;
  }
  Finding unpaired(const Use& giver, uint32_t op, size_t j) const {
    Finding finding = at(giver, op, j);
    finding.text =
        "signals or releases of one pipeline and what takes them do not pair up round by round";
    return finding;
  }
  Finding too_early(const Use& giver, size_t j) const {
    Finding finding = at(giver, giver.stretches[0].op, j);
    finding.text = fmt::format(
        "before its pipeline the taker takes {}, and only {} {} given before the giver's",
        uses_[j].before, before_[j], before_[j] == 1 ? "is" : "are");
    return finding;
  }

  const Program& program_;
  const Count& count_;
  const Use& taker_;
  const std::vector<LoopUse> uses_;
  std::vector<uint64_t> given_;   ///< by loop of the taker: in a round, by all givers
  std::vector<uint64_t> before_;  ///< and by straight code before it
};

/// Each member of a barrier gives to the next, the last to the first: so all meet equally often.
std::optional<Finding> tie_members(const System& system, const Count& barrier,
                                   std::vector<Tie>& ties) {
  const std::vector<Use>& members = barrier.givers;
  for (size_t i = 0; i < members.size(); ++i) {
    Count pair;
    pair.givers = {members[i]};
    pair.takers = {members[(i + 1) % members.size()]};
    if (const auto finding = Pairing(system, pair, pair.takers[0]).run(ties)) return finding;
  }
  return std::nullopt;
}

}  // namespace

std::vector<Count> counts_in_loops(const System& system) { return Reader(system).in_loops(); }

std::optional<Finding> tie(const System& system, const Count& count, std::vector<Tie>& ties) {
  if (count.barrier) return tie_members(system, count, ties);
  if (count.givers.empty() || count.takers.empty()) return std::nullopt;  // stuck, or unbalanced
  for (const Use& taker : count.takers) {
    if (const auto finding = Pairing(system, count, taker).run(ties)) return finding;
  }
  return std::nullopt;
}

}  // namespace mscclc::proof
