// Large programs are unrolled in parts: once the first rank shows how long the bodies are, each
// thread unrolls some of the ranks with an unroller of its own, which evaluates the header and
// declares everything like the first. Then the parts are put together in the order of the ranks, so
// that the program is the one that a single unroller makes. If one of them has anything to report,
// all were in vain: the program is then unrolled in one go, which reports it in order.
#include <algorithm>
#include <deque>

#include "compiler/unroll/unroll_state.h"
#include "ir/program/rank_parts.h"

namespace mscclc {
namespace {

// Each unroller declares all things, which cost more than ops: where these are not many more,
// nothing is gained.
constexpr uint64_t kOpsPerThing = 8;
constexpr uint32_t kMostParts = 4;

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
  const BuilderState& state = builder_.state();
  const uint64_t ops = state.ops * bodies_.size();
  const uint32_t threads = thread_count(ops, options_.threads);
  if (threads == 1 || main_.is_ir || bodies_.size() < 3 || halted()) return 1;
  if (!diagnostics_.all().empty()) return 1;
  if (options_.threads == 0 && ops < kOpsPerThing * count_things(state.program)) return 1;
  return std::min({threads, kMostParts, static_cast<uint32_t>(bodies_.size()) - 1});
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
    others.emplace_back(sources_, ast_, main_, defines_, options_, resolution_, reports[p]);
    others.back().builder_.program().begin_part(p, parts);
  }
  builder_.program().begin_part(0, parts);
  run_threads(parts, [&](uint32_t p) {
    Unroller& mine = p == 0 ? *this : others[p - 1];
    if (p == 0 || mine.begin(items)) mine.bodies(Sweep::ops, range(p));
    mine.builder_.state().leave_rank();
  });
  builder_.state().here = nullptr;
  builder_.state().out = nullptr;  // left already
  if (halted() || !diagnostics_.all().empty()) return false;
  for (uint32_t p = 1; p < parts; ++p) {
    if (others[p - 1].halted() || !reports[p].all().empty()) return false;
    if (!take(others[p - 1], range(p))) return false;
  }
  return true;
}

/// By chain of expansions of another unroller: ours.
std::vector<uint32_t> Unroller::take_contexts(const Unroller& other) {
  std::vector<const std::pair<const ast::Stmt*, uint32_t>*> chains(other.contexts_.size());
  for (const auto& [chain, id] : other.contexts_) chains[id - 1] = &chain;
  std::vector<uint32_t> ours = {0};
  for (const auto* chain : chains) {  // what a chain continues has a lower number
    const auto next = static_cast<uint32_t>(contexts_.size() + 1);
    ours.push_back(contexts_.try_emplace({chain->first, ours[chain->second]}, next).first->second);
  }
  return ours;
}

/// By site of another unroller: ours. New ones come in the order of its own.
std::vector<uint32_t> Unroller::take_sites(const Unroller& other) {
  const Program& theirs = other.builder_.state().program;
  const std::vector<uint32_t> contexts = take_contexts(other);
  std::vector<const OpPlan*> plans(theirs.sites.size());
  for (const auto& [key, plan] : other.plans_) plans[plan.site] = &plan;
  std::vector<NameId> names;
  for (const std::string& name : theirs.names()) names.push_back(builder_.intern(name));
  std::vector<uint32_t> ours;
  for (const OpPlan* plan : plans) {
    const uint32_t context = contexts[plan->context];
    const auto [known, added] = plans_.try_emplace({plan->stmt, context});
    if (added) {
      Site site = theirs.sites[plan->site];
      site.file = program_file(theirs.files[site.file]);
      for (NameId& variable : site.variables) variable = names[variable];
      std::vector<Site>& sites = builder_.program().sites;
      known->second.site = static_cast<uint32_t>(sites.size());
      sites.push_back(std::move(site));
    }
    ours.push_back(known->second.site);
  }
  return ours;
}

/// Takes the ops of some ranks. False after what only the whole shows to be wrong.
bool Unroller::take(Unroller& other, RankRange ranks) {
  evaluator_.earn_steps(kStepsPerOp * other.builder_.state().ops);
  if (!evaluator_.steps(static_cast<int64_t>(other.evaluator_.steps()))) return false;
  return builder_.state().take(other.builder_.state(), ranks, take_sites(other));
}

}  // namespace mscclc
