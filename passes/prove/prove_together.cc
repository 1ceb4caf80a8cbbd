// Sets of plans: every order of calls that can matter is run. docs/design/proofs.md says why these
// are enough.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <new>
#include <optional>
#include <set>

#include "ir/support/precondition.h"
#include "passes/prove/division.h"
#include "passes/prove/loops/loop_groups.h"
#include "passes/prove/loops/rounds.h"
#include "passes/prove/model/premise.h"
#include "passes/prove/prove.h"
#include "passes/prove/report/report.h"
#include "passes/prove/run/explained.h"
#include "passes/prove/run/run.h"
#include "passes/prove/sharing.h"

namespace mscclc {
namespace {

using proof::Finding;
using proof::Joint;
using proof::Part;
using proof::Run;
using proof::System;

/// By rank of the world: the plan of each of its calls.
using Order = std::vector<std::vector<uint32_t>>;

class TogetherProver {
 public:
  TogetherProver(std::span<const SharedPlan> plans, Diagnostics& diagnostics, RefusedCalls* refused)
      : plans_(plans),
        diagnostics_(diagnostics),
        refused_(refused),
        joint_(proof::join(plans)),
        symmetry_(joint_.program) {
    for (const SharedPlan& plan : plans) divides_.push_back(proof::may_divide(*plan.program));
  }

  bool run(CallOrder call_order) {
    const auto has_rows = [](const SharedPlan& plan) { return !plan.program->functions.empty(); };
    if (std::ranges::any_of(plans_, has_rows)) {
      return refuse("plans with row functions are proved one by one, not in sets");
    }
    const auto has_flags = [](const SharedPlan& plan) { return !plan.program->flags.empty(); };
    if (std::ranges::any_of(plans_, has_flags)) {
      return refuse("plans with flags are proved one by one, not in sets");
    }
    if (!proof::may_share(System(joint_, symmetry_, false), plans_, diagnostics_)) return false;
    for (const bool in_place : {false, true}) {
      const System system(joint_, symmetry_, in_place);
      groups_.emplace(system);  // finds nothing, as no plan alone has such counts
      if (!same_order(system)) return false;
      if (call_order == CallOrder::own && !own_orders(system)) return false;
    }
    return true;
  }

 private:
  static constexpr uint64_t kMaxOrders = 4096;

  bool refuse(std::string why, std::vector<Note> notes = {}) {
    diagnostics_.error("undecided", {}, "not decided: " + std::move(why)).notes = std::move(notes);
    return false;
  }

  bool refuse_number(uint32_t length, uint32_t copies) {
    uint32_t most = 1;
    while (std::pow(most + 1, length) <= kMaxOrders) ++most;
    return refuse(
        fmt::format("{} plans with {} copies of scratch have too many orders of calls",
                    plans_.size(), copies),
        {{fmt::format("of plans with so many copies {} can be proved together, no more", most)}});
  }

  /// All ranks call their plans in one order: every one of period + 1 calls.
  bool same_order(const System& system) {
    const uint32_t length = premise(proof::Premise::sequences_one_longer_than_copies,
                                    system.period() + 1, system.period());
    uint64_t orders = 1;
    for (uint32_t i = 0; i < length; ++i) {
      orders *= plans_.size();
      if (orders > kMaxOrders) return refuse_number(length, system.period());
    }
    for (uint64_t i = 0; i < orders; ++i) {
      std::vector<uint32_t> calls;
      for (uint64_t rest = i; calls.size() < length; rest /= plans_.size()) {
        calls.push_back(static_cast<uint32_t>(rest % plans_.size()));
      }
      Order order(joint_.program.ranks.size());
      for (uint32_t r = 0; r < order.size(); ++r) {
        for (const uint32_t part : calls) {
          if (joint_.parts[part].has(r)) order[r].push_back(part);
        }
      }
      if (!try_order(system, order)) return false;
    }
    return true;
  }

  /// Plans over different groups of ranks: each rank calls its plans in an order of its own. That
  /// is one order for all unless groups close a circle. If they do, each plan is called once in all
  /// orders, to find what goes wrong.
  bool own_orders(const System& system) {
    const std::vector<uint32_t> kinds = groups();
    if (premise(proof::Premise::groups_without_a_circle, !circular(kinds))) return true;
    Order order(joint_.program.ranks.size());
    for (uint32_t r = 0; r < order.size(); ++r) {
      for (uint32_t part = 0; part < plans_.size(); ++part) {
        if (joint_.parts[part].has(r)) order[r].push_back(part);
      }
    }
    uint64_t tried = 0;
    do {
      if (agrees(order, kinds) && !try_order(system, order)) return false;
    } while (++tried < kMaxOrders && next(order));
    return refuse(
        "groups of ranks overlap in more than one way: ranks may call these plans in orders that "
        "do not agree");
  }

  /// The next combination of the ranks' orders.
  static bool next(Order& order) {
    return std::ranges::any_of(order, [](std::vector<uint32_t>& calls) {
      return std::next_permutation(calls.begin(), calls.end());
    });
  }

  /// Do all ranks call plans over the same ranks in one order? That much is asked of the caller.
  bool agrees(const Order& order, const std::vector<uint32_t>& kinds) const {
    for (uint32_t kind = 0; kind < plans_.size(); ++kind) {
      const auto calls_of = [&](uint32_t rank) {
        std::vector<uint32_t> calls;
        std::ranges::copy_if(order[rank], std::back_inserter(calls),
                             [&](uint32_t part) { return kinds[part] == kind; });
        return calls;
      };
      const auto part = std::ranges::find(kinds, kind);
      if (part == kinds.end()) continue;
      const std::vector<uint32_t>& ranks = joint_.parts[part - kinds.begin()].world;
      const std::vector<uint32_t> first = calls_of(ranks[0]);
      if (std::ranges::any_of(ranks, [&](uint32_t r) { return calls_of(r) != first; }))
        return false;
    }
    return true;
  }

  /// By plan: a number for its set of ranks.
  std::vector<uint32_t> groups() const {
    std::vector<std::vector<uint32_t>> sets;
    std::vector<uint32_t> numbers;
    for (const Part& part : joint_.parts) {
      std::vector<uint32_t> ranks = part.world;
      std::ranges::sort(ranks);
      const auto at = std::ranges::find(sets, ranks);
      numbers.push_back(static_cast<uint32_t>(at - sets.begin()));
      if (at == sets.end()) sets.push_back(ranks);
    }
    return numbers;
  }

  /// Is there a circle of groups, each with a rank of the next? Two with two ranks in common are
  /// one.
  bool circular(const std::vector<uint32_t>& kinds) const {
    const size_t ranks = joint_.program.ranks.size();
    std::vector<size_t> set_of(ranks + plans_.size());
    for (size_t i = 0; i < set_of.size(); ++i) set_of[i] = i;
    const auto root = [&](size_t i) {
      while (set_of[i] != i) i = set_of[i];
      return i;
    };
    std::set<uint32_t> seen;
    for (size_t i = 0; i < joint_.parts.size(); ++i) {
      if (!seen.insert(kinds[i]).second) continue;
      for (const uint32_t r : joint_.parts[i].world) {
        const size_t a = root(ranks + i), b = root(r);
        if (a == b) return true;
        set_of[a] = b;
      }
    }
    return false;
  }

  bool try_order(const System& system, const Order& order) {
    for (const std::vector<uint32_t>& rounds : proof::round_choices(joint_.program)) {
      const proof::RunOptions options{.rounds = rounds, .order = order, .part_divides = divides_};
      Run run(system, *groups_, symbols_, options);
      run.go();
      if (run.findings().empty()) continue;
      report(system, order,
             proof::explained(run.findings(), run.suspects(), system, *groups_, symbols_, options));
      return false;
    }
    return true;
  }

  void report(const System& system, const Order& order, const std::vector<Finding>& findings) {
    const std::vector<Finding> causes = proof::causes(findings);
    for (const Finding& finding : causes) proof::report(system, finding, diagnostics_);
    note_order(order);
    if (refused_ != nullptr) note_refused(system, order, causes);
  }

  void note_refused(const System& system, const Order& order, const std::vector<Finding>& causes) {
    refused_->order = order;
    for (const Finding& finding : causes) {
      std::optional<Unordered> pair = proof::unordered(system, finding);
      if (!pair) continue;
      localize(pair->first);
      if (pair->second) localize(*pair->second);
      refused_->unordered.push_back(*pair);
    }
  }

  /// From the joint program's op to that of the plan.
  void localize(Unordered::OpInCall& place) const {
    const Part& part = joint_.parts[refused_->order[place.rank][place.call]];
    place.op -= part.first_op[place.rank];
  }

  void note_order(const Order& order) {
    Diagnostic& d = diagnostics_.error("order-of-calls", {},
                                       "this happens if the plans are called in this order");
    const auto calls = [&](const std::vector<uint32_t>& parts) {
      std::vector<std::string_view> names;
      for (const uint32_t part : parts) names.push_back(plans_[part].name);
      return fmt::format("{}", fmt::join(names, ", "));
    };
    if (std::ranges::all_of(order, [&](const auto& parts) { return parts == order[0]; })) {
      d.notes.push_back({"every rank: " + calls(order[0])});
      return;
    }
    for (uint32_t r = 0; r < order.size(); ++r) {
      if (!order[r].empty()) d.notes.push_back({fmt::format("rank {}: {}", r, calls(order[r]))});
    }
  }

  std::span<const SharedPlan> plans_;
  Diagnostics& diagnostics_;
  RefusedCalls* const refused_;
  const Joint joint_;
  const proof::Symmetry symmetry_;           ///< none: every rank is run
  std::optional<proof::LoopGroups> groups_;  ///< of the system at hand
  const proof::Symbols symbols_;
  std::vector<bool> divides_;
};

bool has_different_ranks(const SharedPlan& plan) {
  const std::set<uint32_t> ranks(plan.ranks.begin(), plan.ranks.end());
  return ranks.size() == plan.ranks.size() && ranks.size() == plan.program->ranks.size();
}

}  // namespace

bool prove_together(std::span<const SharedPlan> plans, CallOrder call_order,
                    Diagnostics& diagnostics, RefusedCalls* refused) {
  precondition([&] { return std::ranges::all_of(plans, has_different_ranks); });
  // A plan alone has been proved for any number of calls.
  if (plans.size() < 2) return true;
  try {
    return TogetherProver(plans, diagnostics, refused).run(call_order);
  } catch (const std::bad_alloc&) {
    proof::report_no_memory(diagnostics);
    return false;
  }
}

}  // namespace mscclc
