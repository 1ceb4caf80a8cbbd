#include "executor/simulator/schedules/witness.h"

#include <algorithm>
#include <chrono>

#include "ir/contract/contract.h"
#include "ir/program/credits.h"
#include "ir/support/precondition.h"

namespace mscclc {
namespace {

/// What is run, apart from calls and holds: sizes, and whether buffers coincide.
struct Setting {
  std::vector<uint64_t> bytes;  ///< by plan
  bool in_place;
};

class Search {
 public:
  Search(std::span<const PlacedPlan> plans, const WitnessSearch& search)
      : plans_(plans), search_(search), runner_(plans), start_(Clock::now()) {}

  std::optional<Witness> find(const CallsByRank& order, std::span<const Suspect> suspects) {
    suspects = suspects.first(std::min(suspects.size(), search_.suspects));
    choose_orders(order, suspects);
    if (!choose_settings()) return std::nullopt;
    if (!try_all({}) && !try_suspects(suspects) && !try_seeds()) return std::nullopt;
    minimise();
    return make();
  }

 private:
  using Clock = std::chrono::steady_clock;
  using Holds = std::vector<Hold>;

  bool late() const {
    return std::chrono::duration<double>(Clock::now() - start_).count() > search_.seconds;
  }
  bool alone() const { return plans_.size() == 1; }
  void choose_orders(const CallsByRank& order, std::span<const Suspect> suspects);
  void add_order(std::initializer_list<uint32_t> calls);
  uint32_t align() const;
  uint64_t round_bytes(uint64_t rounds) const;
  bool choose_settings();
  bool choose_type();
  void list_settings();
  void add_settings(std::vector<uint64_t> bytes);
  RunStatus run(const RunSpec& spec);
  bool fails(const RunSpec& spec);
  bool keep(const RunSpec& smaller);
  bool try_holds(const Setting& setting, const CallsByRank& order, const Holds& holds);
  bool try_all(const Holds& holds);
  bool try_suspects(std::span<const Suspect> suspects);
  bool try_seeds();
  std::vector<Hold> ways(const Suspect::OpOfCall& place) const;
  void minimise();
  bool without_call(RunSpec& spec, uint32_t plan, size_t index) const;
  Witness make() const;

  const std::span<const PlacedPlan> plans_;
  const WitnessSearch& search_;
  Simulator runner_;
  const Clock::time_point start_;
  std::vector<CallsByRank> orders_;  ///< of calls, that are tried
  std::vector<Setting> settings_;
  /// What is being tried; at the end, what has failed. Of one plan, too, as of several.
  RunSpec spec_;
  RunStatus status_ = RunStatus::right;
};

/// One order of calls for all ranks, of which each makes those that it has part in.
void Search::add_order(std::initializer_list<uint32_t> calls) {
  CallsByRank& order = orders_.emplace_back(world_ranks(plans_));
  for (const uint32_t plan : calls) {
    for (const uint32_t r : plans_[plan].ranks) order[r].push_back(plan);
  }
}

/// The calls in which something is suspected, and then the same again: what goes wrong in them may
/// show in a later one only.
void Search::choose_orders(const CallsByRank& order, std::span<const Suspect> suspects) {
  if (!order.empty()) {
    orders_ = {order, order};
    for (std::vector<uint32_t>& calls : orders_[1]) {
      const std::vector<uint32_t> again = calls;
      calls.insert(calls.end(), again.begin(), again.end());
    }
  } else if (alone()) {
    uint64_t calls = search_.calls;
    for (const Suspect& s : suspects) {
      calls = std::max({calls, s.first.call + 2, s.second ? s.second->call + 2 : 0});
    }
    orders_ = {CallsByRank(plans_[0].ranks.size(), std::vector<uint32_t>(calls, 0))};
  } else {
    for (uint32_t a = 0; a < plans_.size(); ++a) {
      for (uint32_t b = a + 1; b < plans_.size(); ++b) {
        add_order({a, b, a});
        add_order({b, a, b});
      }
    }
  }
}

/// Of a message whose chunks have so many bytes.
uint64_t message(const Program& program, uint64_t chunk_bytes) {
  const Contract& contract = program.contract;
  const uint64_t part = chunk_bytes * std::max(1u, contract.part_chunks());
  return Chunking(contract, part, program.launch.align).message_bytes();
}

uint32_t Search::align() const {
  uint32_t most = 1;
  for (const PlacedPlan& plan : plans_) most = std::max(most, plan.program->launch.align);
  return most;
}

/// Bytes of a chunk: those of so many rounds of the pipelines, within reason.
uint64_t Search::round_bytes(uint64_t rounds) const {
  constexpr uint64_t kMax = uint64_t{1} << 20;
  uint64_t unit = 0;
  for (const PlacedPlan& plan : plans_) {
    for (const Loop& loop : plan.program->loops) unit = std::max(unit, loop.unit);
  }
  return unit > kMax / rounds ? kMax : rounds * unit;
}

void Search::add_settings(std::vector<uint64_t> bytes) {
  bool apart = false, together = false;
  for (const PlacedPlan& plan : plans_) {
    const Contract& contract = plan.program->contract;
    const bool may = contract.in_place != InPlace::no && contract.can_alias();
    apart |= contract.in_place != InPlace::yes;
    together |= may;
  }
  if (apart) settings_.push_back({bytes, false});
  if (together) settings_.push_back({std::move(bytes), true});
}

void Search::list_settings() {
  const uint64_t unit = align();
  const auto of_chunks = [&](uint64_t chunk_bytes) {
    std::vector<uint64_t> bytes;
    for (const PlacedPlan& plan : plans_) bytes.push_back(message(*plan.program, chunk_bytes));
    return bytes;
  };
  const bool even = std::ranges::any_of(
      plans_, [](const PlacedPlan& plan) { return plan.program->contract.even_only; });
  if (round_bytes(1) > 0) {
    uint64_t many = 2;
    for (const PlacedPlan& plan : plans_) {
      many = std::max(many, rounds_beyond_credits(*plan.program));
    }
    add_settings(of_chunks(round_bytes(2) + 6 * unit));
    if (many > 2) add_settings(of_chunks(round_bytes(many) + 6 * unit));
  }
  // Six granules: every strand has some, whatever the number of strands. Unequal chunks; one
  // element.
  add_settings(of_chunks(6 * unit));
  if (!even) {
    std::vector<uint64_t> unequal = of_chunks(7 * unit);
    for (uint64_t& bytes : unequal) bytes += 4;
    add_settings(std::move(unequal));
    add_settings(std::vector<uint64_t>(plans_.size(), 4));
  }
  add_settings(of_chunks(18 * unit));
  // Of several plans one may have the larger messages: chunks of shared scratch lie elsewhere then.
  for (size_t large = 0; !alone() && large < plans_.size(); ++large) {
    std::vector<uint64_t> bytes = of_chunks(6 * unit);
    bytes[large] = message(*plans_[large].program, 18 * unit);
    add_settings(std::move(bytes));
  }
}

/// The first type and reduction that the plans can do at all.
bool Search::choose_type() {
  spec_.order = orders_.front();
  for (const Setting& setting : settings_) {
    spec_.plan_bytes = setting.bytes;
    spec_.in_place = setting.in_place;
    for (const Dtype dtype : {Dtype::f32, Dtype::i32, Dtype::f16, Dtype::u8}) {
      for (const ReduceOp op :
           {ReduceOp::sum, ReduceOp::max, ReduceOp::min, ReduceOp::prod, ReduceOp::avg}) {
        spec_.dtype = dtype;
        spec_.op = op;
        if (run(spec_) != RunStatus::refused) return true;
      }
    }
  }
  return false;
}

bool Search::choose_settings() {
  if (orders_.empty()) return false;
  list_settings();
  return !settings_.empty() && choose_type();
}

/// A spec as one plan has it.
RunSpec as_of_one(RunSpec spec) {
  spec.bytes = spec.plan_bytes[0];
  spec.iterations = static_cast<uint32_t>(spec.order[0].size());
  spec.plan_bytes.clear();
  spec.order.clear();
  return spec;
}

RunStatus Search::run(const RunSpec& spec) {
  Diagnostics diagnostics;
  if (!alone()) return runner_.run(spec, diagnostics).status;
  runner_.restart();
  return runner_.run(as_of_one(spec), diagnostics).status;
}

bool Search::fails(const RunSpec& spec) {
  const RunStatus status = run(spec);
  if (status != RunStatus::wrong && status != RunStatus::hung) return false;
  status_ = status;
  return true;
}

bool Search::try_holds(const Setting& setting, const CallsByRank& order, const Holds& holds) {
  spec_.plan_bytes = setting.bytes;
  spec_.in_place = setting.in_place;
  spec_.order = order;
  for (const uint32_t strands : {2u, 3u}) {
    spec_.adversary = Adversary{.strands = strands, .holds = holds};
    if (fails(spec_)) return true;
  }
  return false;
}

bool Search::try_all(const Holds& holds) {
  return std::ranges::any_of(orders_, [&](const CallsByRank& order) {
    return std::ranges::any_of(settings_,
                               [&](const Setting& s) { return try_holds(s, order, holds); });
  });
}

/// Ways to put one op off, the most likely first.
std::vector<Hold> Search::ways(const Suspect::OpOfCall& place) const {
  const PlacedPlan& plan = plans_[orders_.front()[place.rank][place.call]];
  const Op& op = plan.program->ranks[plan.rank_at(place.rank)].ops[place.op];
  Hold hold{.what = Hold::What::op, .rank = place.rank, .op = place.op, .call = place.call};
  std::vector<Hold> all;
  if (info(op.kind).moves_data()) {
    hold.what = Hold::What::access;
    all.push_back(hold);
    hold.what = Hold::What::proxy;
    if ((info(op.kind).channels & kPort) != 0) all.push_back(hold);
  }
  hold.what = Hold::What::op;
  for (const uint32_t strand : {Hold::kAllStrands, 0u, 1u}) {
    hold.strand = strand;
    all.push_back(hold);
  }
  hold.strand = Hold::kAllStrands;
  hold.what = Hold::What::call;
  all.push_back(hold);
  return all;
}

bool Search::try_suspects(std::span<const Suspect> suspects) {
  std::vector<Holds> pairs, singles;
  for (const Suspect& s : suspects) {
    const std::vector<Hold> first = ways(s.first);
    for (const Hold& a : first) singles.push_back({a});
    if (!s.second) continue;
    const std::vector<Hold> second = ways(*s.second);
    for (const Hold& b : second) singles.push_back({b});
    for (const Hold& a : first) {
      for (const Hold& b : second) {
        pairs.push_back({a, b});
        pairs.push_back({b, a});
      }
    }
  }
  for (const std::vector<Holds>* list : {&singles, &pairs}) {
    for (const CallsByRank& order : orders_) {
      for (const Setting& setting : settings_) {
        for (const Holds& holds : *list) {
          if (late()) return false;
          if (try_holds(setting, order, holds)) return true;
        }
      }
    }
  }
  return false;
}

bool Search::try_seeds() {
  for (uint32_t i = 0; i < search_.seeds && !late(); ++i) {
    const Setting& setting = settings_[i % settings_.size()];
    spec_.schedule_seed = i + 1;
    if (try_holds(setting, orders_[i / settings_.size() % orders_.size()], {})) return true;
  }
  return false;
}

bool Search::keep(const RunSpec& smaller) {
  if (!fails(smaller)) return false;
  spec_ = smaller;
  return true;
}

/// Takes a call of a plan out, the `index`-th, at all its ranks. False: a hold is in it.
bool Search::without_call(RunSpec& spec, uint32_t plan, size_t index) const {
  for (const uint32_t rank : plans_[plan].ranks) {
    std::vector<uint32_t>& calls = spec.order[rank];
    size_t at = 0;
    for (size_t left = index; calls[at] != plan || left > 0; ++at) {
      if (calls[at] == plan) --left;
    }
    for (Hold& hold : spec.adversary->holds) {
      if (hold.rank != rank || hold.call < at) continue;
      if (hold.call == at) return false;
      --hold.call;
    }
    calls.erase(calls.begin() + static_cast<ptrdiff_t>(at));
  }
  return true;
}

/// Leaves out what is not needed: holds, calls, strands.
void Search::minimise() {
  for (size_t i = spec_.adversary->holds.size(); i-- > 0;) {
    RunSpec smaller = spec_;
    smaller.adversary->holds.erase(smaller.adversary->holds.begin() + static_cast<ptrdiff_t>(i));
    keep(smaller);
  }
  for (uint32_t plan = 0; plan < plans_.size(); ++plan) {
    const uint64_t calls = CallSequence(spec_.order).calls_of(plan, plans_[plan].ranks[0]);
    for (size_t i = calls; i-- > 0;) {
      RunSpec smaller = spec_;
      if (without_call(smaller, plan, i)) keep(smaller);
    }
  }
  RunSpec smaller = spec_;
  smaller.adversary->strands = 1;
  const auto of_one_strand = [](const Hold& h) {
    return h.strand != Hold::kAllStrands && h.strand > 0;
  };
  const Holds& holds = smaller.adversary->holds;
  if (std::none_of(holds.begin(), holds.end(), of_one_strand)) keep(smaller);
  fails(spec_);  // its own status, not that of what was left out last
}

Witness Search::make() const {
  Witness witness;
  witness.status = status_;
  Schedule& schedule = witness.schedule;
  schedule.spec = spec_;
  for (Hold& hold : schedule.spec.adversary->holds) {
    if (hold.what == Hold::What::call) hold.op = 0;
    hold.note = alone() ? describe(*plans_[0].program, hold) : describe(plans_, spec_.order, hold);
  }
  if (alone()) {
    schedule.plan = program_hash(*plans_[0].program);
    schedule.spec = as_of_one(std::move(schedule.spec));
    return witness;
  }
  for (const PlacedPlan& plan : plans_) {
    schedule.plans.push_back({program_hash(*plan.program), plan.ranks});
  }
  return witness;
}

}  // namespace

std::optional<Witness> find_witness(const Program& program, std::span<const Suspect> suspects,
                                    const WitnessSearch& search) {
  precondition(program.split);
  const PlacedPlan plan = placed_alone(program);
  return find_witness(std::span(&plan, 1), {}, suspects, search);
}

std::optional<Witness> find_witness(std::span<const PlacedPlan> plans, const CallsByRank& order,
                                    std::span<const Suspect> suspects,
                                    const WitnessSearch& search) {
  precondition([&] {
    return std::ranges::all_of(plans, [](const PlacedPlan& plan) { return plan.program->split; });
  });
  return Search(plans, search).find(order, suspects);
}

}  // namespace mscclc
