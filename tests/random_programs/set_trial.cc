// Judges sets of plans, and calls of one plan with messages of several sizes, on the simulator.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>

#include "compiler/compile.h"
#include "executor/simulator/run.h"
#include "ir/diagnostics/first_message.h"
#include "tests/random_programs/draws.h"
#include "tests/random_programs/sets.h"

namespace mscclc::random_programs {
namespace {

/// A message of so many bytes, or the smallest that has an element, or a row: none without are
/// sent (lemma R5), but by barriers. Packets of an empty one between others would not come.
uint64_t not_empty(const Program& program, uint64_t bytes, Dtype dtype) {
  const bool rows = program.contract.columns != 0;
  const uint64_t element = rows ? program.granule(dtype) : info(dtype).bytes;
  return std::max(bytes, Chunking::parts_of_message(program.contract) * element);
}

/// Was it refused as chunk does not lie on chunk, though scratch is for one largest message?
bool lies_askew(const RunSpec& spec, const Diagnostics& diagnostics) {
  return spec.capacity == std::ranges::max(spec.plan_bytes) && !diagnostics.all().empty() &&
         diagnostics.all()[0].code == "scratch-sizes";
}

/// What goes wrong in one run; nothing if it was right, or cannot be done with these sizes.
std::optional<std::string> fault_of_run(Simulator& runner, const RunSpec& spec) {
  Diagnostics diagnostics;
  const RunResult result = runner.run(spec, diagnostics);
  if (result.status == RunStatus::right) return {};
  if (result.status == RunStatus::refused && !lies_askew(spec, diagnostics)) return {};
  return fmt::format("{} bytes of {}, scratch for {}, calls [{}]: {}",
                     fmt::join(spec.plan_bytes, ", "), describe_schedule(spec), spec.capacity,
                     fmt::join(spec.order, "; "), first_message(diagnostics, "wrong"));
}

/// Plans that have been read, and which ranks of the world they are on.
class LoadedSet {
 public:
  /// Fails if one is malformed, or refused alone.
  Result<void> load(const RandomSet& set) {
    for (const SetMember& member : set.members) {
      auto program = random_programs::load(member.random);
      if (!program) return program.error();
      if (const auto added = add(*std::move(program), member.ranks); !added) return added;
    }
    return {};
  }

  Result<void> add(Program program, const std::vector<uint32_t>& ranks) {
    Diagnostics diagnostics;
    if (!prove(program, diagnostics).proved) {
      return Error{"alone: " + first_message(diagnostics)};
    }
    programs_.push_back(std::move(program));
    const std::string name = fmt::format("p{}", plans_.size());
    plans_.push_back({&programs_.back(), name, ranks});
    placed_.push_back({&programs_.back(), name, ranks});
    return {};
  }

  std::span<const SharedPlan> plans() const { return plans_; }
  /// Do signals of one call answer to waits of another?
  bool has_credits() const {
    return std::ranges::any_of(programs_, [](const Program& program) {
      return std::ranges::any_of(program.ranks, [](const Rank& rank) {
        return std::ranges::any_of(rank.channels, [](const Channel& c) { return c.credits > 0; });
      });
    });
  }

  /// What goes wrong in some runs.
  std::optional<std::string> fault(CallOrder call_order, uint64_t number, uint32_t runs) const {
    Simulator runner(placed_);
    Dice dice(number ^ 0xbf58476d1ce4e5b9);
    for (uint32_t i = 0; i < runs; ++i) {
      if (auto fault = fault_of_run(runner, draw(call_order, dice))) return fault;
    }
    return std::nullopt;
  }

 private:
  /// Most often scratch lies as the largest message needs it: plans with the same chunks must
  /// agree.
  RunSpec draw(CallOrder call_order, Dice& dice) const {
    const Program& any = *placed_[dice.below(static_cast<uint32_t>(placed_.size()))].program;
    RunSpec spec = draw_run(any, dice);
    const bool typed = std::ranges::any_of(
        placed_, [](const PlacedPlan& p) { return !p.program->select.dtypes.empty(); });
    if (typed) spec.dtype = Dtype::f32;
    const bool alike = one_in(dice, 3);
    for (const PlacedPlan& plan : placed_) {
      const uint64_t bytes = alike ? spec.bytes : draw_bytes(*plan.program, dice);
      spec.plan_bytes.push_back(not_empty(*plan.program, bytes, spec.dtype));
    }
    if (!one_in(dice, 4)) spec.capacity = std::ranges::max(spec.plan_bytes);
    spec.order = call_order == CallOrder::one ? draw_one_order(dice) : draw_own_orders(dice);
    return spec;
  }

  /// There is one order of all calls, of which each rank makes its part.
  CallsByRank draw_one_order(Dice& dice) const {
    CallsByRank order(world_ranks(placed_));
    const uint32_t calls = 2 + dice.below(6);
    for (uint32_t i = 0; i < calls; ++i) {
      const uint32_t plan = dice.below(static_cast<uint32_t>(placed_.size()));
      for (const uint32_t r : placed_[plan].ranks) order[r].push_back(plan);
    }
    return order;
  }

  /// Plans over the same ranks come in one order; each rank mixes those of its groups as it likes.
  CallsByRank draw_own_orders(Dice& dice) const {
    std::map<std::vector<uint32_t>, std::vector<uint32_t>> groups;  // by ranks: plans
    for (uint32_t p = 0; p < placed_.size(); ++p) {
      std::vector<uint32_t> ranks = placed_[p].ranks;
      std::ranges::sort(ranks);
      groups[ranks].push_back(p);
    }
    std::vector<std::vector<std::vector<uint32_t>>> own(world_ranks(placed_));  // by rank
    for (const auto& [ranks, plans] : groups) {
      std::vector<uint32_t> calls(1 + dice.below(4));
      for (uint32_t& call : calls) call = plans[dice.below(static_cast<uint32_t>(plans.size()))];
      for (const uint32_t r : ranks) own[r].push_back(calls);
    }
    CallsByRank order;
    for (const auto& sequences : own) order.push_back(draw_mix(sequences, dice));
    return order;
  }

  static std::vector<uint32_t> draw_mix(const std::vector<std::vector<uint32_t>>& sequences,
                                        Dice& dice) {
    std::vector<uint32_t> turns;  // whose call is next
    for (uint32_t i = 0; i < sequences.size(); ++i)
      turns.resize(turns.size() + sequences[i].size(), i);
    for (size_t i = turns.size(); i > 1; --i) {
      std::swap(turns[i - 1], turns[dice.below(static_cast<uint32_t>(i))]);
    }
    std::vector<size_t> at(sequences.size());
    std::vector<uint32_t> calls;
    for (const uint32_t i : turns) calls.push_back(sequences[i][at[i]++]);
    return calls;
  }

  std::deque<Program> programs_;
  std::vector<SharedPlan> plans_;
  std::vector<PlacedPlan> placed_;
};

/// Calls of this plan move nothing that another has; its copies make the prover try more calls in a
/// row.
std::string neutral_plan(size_t ranks) {
  std::string text = fmt::format(
      "ir 1\nprogram neutral\ncollective custom(ranks: {}, input: 1, output: 1, inplace: false)\n",
      ranks);
  for (size_t r = 0; r < ranks; ++r)
    text += fmt::format("ensure output[0] at {0} = input[0] at {0}\n", r);
  text += "launch split: true\n";
  for (size_t r = 0; r < ranks; ++r) {
    text += fmt::format(
        "rank {} {{\n  buffer q[1] copies: 4\n  tb 0 {{\n    copy q[0] <- input[0]\n    sync\n"
        "    copy output[0] <- q[0]\n  }}\n}}\n",
        r);
  }
  return text;
}

/// Lemma T1: what is proved of some calls in a row is so of more. Says what is not. (Calls of the
/// neutral plan count, so what goes wrong between them says nothing.)
std::optional<std::string> refused_beside_another(std::span<const SharedPlan> plans,
                                                  CallOrder order) {
  Sources sources;
  Diagnostics diagnostics;
  const std::vector<uint32_t>& ranks = plans[0].ranks;
  const FileId file = sources.add("neutral.mscl", neutral_plan(ranks.size()));
  const auto neutral = compile(sources, file, {}, {}, diagnostics);
  if (!neutral) return render_text(diagnostics, sources);
  std::vector<SharedPlan> more(plans.begin(), plans.end());
  more.push_back({&*neutral, "neutral", ranks});
  RefusedCalls refused;
  if (prove_together(more, order, diagnostics, &refused) || refused.order.empty())
    return std::nullopt;
  for (const std::vector<uint32_t>& calls : refused.order) {
    if (std::ranges::count(calls, plans.size()) > 0) return std::nullopt;
  }
  return fmt::format("proved, but not for calls [{}]: {}", fmt::join(refused.order, "; "),
                     first_message(diagnostics));
}

/// What comes of plans that are proved alone.
Tried judge(const LoadedSet& loaded, CallOrder order, uint64_t number,
            const TrialOptions& options) {
  Tried tried;
  Diagnostics diagnostics;
  if (!prove_together(loaded.plans(), order, diagnostics)) {
    const bool undecided = diagnostics.all()[0].code == "undecided";
    const bool wrong = loaded.fault(order, number, options.refused_runs).has_value();
    tried.outcome = wrong ? Outcome::refused_wrong : Outcome::refused;
    if (undecided) tried.outcome = Outcome::undecided;
    tried.why = first_message(diagnostics);
    return tried;
  }
  auto fault = loaded.fault(order, number, options.runs);
  if (!fault && (loaded.has_credits() || number % 8 == 0))
    fault = refused_beside_another(loaded.plans(), order);
  return {fault ? Outcome::hole : Outcome::proved, fault.value_or("")};
}

}  // namespace

Tried try_set(const RandomSet& set, uint64_t number, const TrialOptions& options) {
  LoadedSet loaded;
  if (const auto done = loaded.load(set); !done) return {.why = done.error().text()};
  return judge(loaded, set.order, number, options);
}

Tried try_together(std::span<const Program> plans, uint64_t number, const TrialOptions& options) {
  LoadedSet loaded;
  for (const Program& plan : plans) {
    std::vector<uint32_t> ranks(plan.ranks.size());
    std::iota(ranks.begin(), ranks.end(), 0);
    if (const auto added = loaded.add(plan, ranks); !added) return {.why = added.error().text()};
  }
  return judge(loaded, CallOrder::one, number, options);
}

std::optional<std::string> fault_of_sizes(const Program& program, uint64_t number, uint32_t runs) {
  Program shared = program;  // its calls have their scratch in common
  shared.launch.reuse_scratch = true;
  std::vector<PlacedPlan> plans(3, placed_alone(shared));
  for (size_t p = 0; p < plans.size(); ++p) plans[p].name = fmt::format("size {}", p);
  Simulator runner(plans);
  Dice dice(number ^ 0x94d049bb133111eb);
  for (uint32_t i = 0; i < runs; ++i) {
    RunSpec spec = draw_run(shared, dice);
    for (size_t p = 0; p < plans.size(); ++p) {
      spec.plan_bytes.push_back(not_empty(shared, draw_bytes(shared, dice), spec.dtype));
    }
    spec.capacity = std::ranges::max(spec.plan_bytes);
    std::vector<uint32_t> calls(2 + dice.below(4));
    for (uint32_t& call : calls) call = dice.below(static_cast<uint32_t>(plans.size()));
    spec.order.assign(shared.ranks.size(), calls);
    if (auto fault = fault_of_run(runner, spec)) return "calls of several sizes, " + *fault;
  }
  return std::nullopt;
}

}  // namespace mscclc::random_programs
