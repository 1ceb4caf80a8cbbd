// Large programs are unrolled in parts: once the first rank shows how long the bodies are, each
// thread unrolls some of the ranks with an unroller of its own, which evaluates the header and
// declares everything like the first. Then the parts are put together in the order of the ranks, so
// that the program is the one that a single unroller makes. If one of them has anything to report,
// all were in vain: the program is then unrolled in one go, which reports it in order.
#include <algorithm>
#include <deque>

#include "compiler/unroll/unroller.h"
#include "ir/program/rank_parts.h"

namespace mscclc {
namespace {

// Each unroller declares all things, which cost more than ops: where these are not many more,
// nothing is gained.
constexpr uint64_t kOpsPerThing = 8;
constexpr uint32_t kMaxParts = 4;

uint64_t count_things(const Program& program) {
  uint64_t things = 0;
  for (const Rank& rank : program.ranks) {
    things += rank.buffers.size() + rank.channels.size() + rank.semaphores.size();
  }
  return things;
}

}  // namespace

/// In how many parts to unroll the ranks after rank 0, which is unrolled.
uint32_t Unroller::count_parts() const {
  const uint64_t ops = builder_.state().budget().ops() * bodies_.size();
  const uint32_t threads = thread_count(ops, scope_.options.threads);
  if (threads == 1 || scope_.main.is_ir || bodies_.size() < 3 || scope_.halted()) return 1;
  if (!scope_.diagnostics.all().empty()) return 1;
  if (scope_.options.threads == 0 &&
      ops < kOpsPerThing * count_things(builder_.state().draft().program))
    return 1;
  return std::min({threads, kMaxParts, static_cast<uint32_t>(bodies_.size()) - 1});
}

/// Unrolls the ranks after the first. False if that was of no use.
bool Unroller::unroll_parts(const std::vector<Item>& items, uint32_t parts) {
  const uint64_t ranks = bodies_.size() - 1;
  const auto range = [&](uint32_t p) {
    return RankRange{static_cast<uint32_t>(1 + ranks * p / parts),
                     static_cast<uint32_t>(1 + ranks * (p + 1) / parts)};
  };
  ast_.prepare_for_threads();
  std::deque<Diagnostics> reports(parts);
  std::deque<Unroller> others;
  for (uint32_t p = 1; p < parts; ++p) {
    others.emplace_back(input_, reports[p]);
    others.back().builder_.program().begin_part(p, parts);
  }
  builder_.program().begin_part(0, parts);
  run_threads(parts, [&](uint32_t p) {
    Unroller& mine = p == 0 ? *this : others[p - 1];
    if (p == 0 || mine.begin(items)) mine.bodies(Sweep::ops, range(p));
    mine.builder_.state().leave_ranks();
  });
  if (scope_.halted() || !scope_.diagnostics.all().empty()) return false;
  for (uint32_t p = 1; p < parts; ++p) {
    if (others[p - 1].scope_.halted() || !reports[p].all().empty()) return false;
    if (!take(others[p - 1], range(p))) return false;
  }
  return true;
}

/// Takes the ops of some ranks. False after what only the whole shows to be wrong.
bool Unroller::take(Unroller& other, RankRange ranks) {
  evaluator_.steps().earn(UnrollScope::kStepsPerOp * other.builder_.state().budget().ops());
  if (!evaluator_.steps().take_if_left(static_cast<int64_t>(other.evaluator_.steps().taken())))
    return false;
  return builder_.state().take(other.builder_.state(), ranks, sites_.take(other.sites_));
}

}  // namespace mscclc
