#include "passes/prove/run/sum_contracts.h"

#include <algorithm>

#include "passes/prove/model/premise.h"

namespace mscclc::proof {
namespace {

/// Minima and maxima are not rounded: every order gives the same. (Plans mix no reductions.)
bool takes_extremum(const Program& program) {
  for (const Rank& rank : program.ranks) {
    for (const Op& op : rank.ops) {
      if (info(op.kind).has(kReduces)) return is_extremum(op.reduce);
    }
  }
  return false;
}

}  // namespace

SumContracts::SumContracts(const System& system, const Symbols& symbols, const CallOrder& calls,
                           const History& history, const ChunkContents& contents,
                           FindingList& findings)
    : system_(system),
      symbols_(symbols),
      calls_(calls),
      history_(history),
      contents_(contents),
      findings_(findings) {}

/// A sum is made in one order wherever it is kept: here, and at all ranks that this one stands for,
/// which hold what it becomes when they turn. Sums that turn into one another are filed under the
/// turn with the least number.
bool SumContracts::added_alike(const ChunkName& name, const Symbol& found) {
  const uint32_t turns = system_.symmetry().turns();
  const Symbol sum = found.plain();
  const uint64_t least = least_image(sum);
  bool alike = true;
  for (uint32_t k = 0; k < turns; ++k) {
    const Symbol image = contents_.symbols().turned(sum, k);
    if (image.low != least) continue;
    const auto [first, added] = sums_.try_emplace(least, FirstSum{image.order, name});
    alike &= premise(Premise::sums_are_made_alike, first->second.order == image.order);
  }
  return alike;
}

uint64_t SumContracts::least_image(const Symbol& sum) const {
  uint64_t least = sum.low;
  for (uint32_t k = 1; k < system_.symmetry().turns(); ++k) {
    least = std::min(least, contents_.symbols().turned(sum.plain(), k).low);
  }
  return least;
}

/// In which of the orders of contracts the contributions were added, here and at all ranks that
/// this one stands for.
SumOrders SumContracts::orders_of(const Summands& added, const Symbol& found, const After& after) {
  SumOrders kept{.replicated = true, .ranks = true, .tree = true, .exact = true};
  if (!premise(Premise::one_input_of_each_rank, added.once)) return {.replicated = true};
  const bool all = added.ranks.size() == system_.ranks();  // which turn into all ranks
  const SumShapes* wanted = &added.shapes;
  for (uint32_t k = 0; k < system_.symmetry().turns(); ++k) {
    if (k > 0 && !all) wanted = &summands(turned(added.ranks, k)).shapes;
    const uint64_t shape = contents_.symbols().turned(found.plain(), k).shape;
    kept.ranks &= premise(Premise::sums_in_rank_order, shape == after(wanted->ranks));
    kept.tree &= premise(Premise::sums_along_the_tree, shape == after(wanted->tree));
    kept.exact &= premise(Premise::sums_are_exact, shape == after(wanted->exact));
  }
  return kept;
}

std::vector<uint32_t> SumContracts::turned(const std::vector<uint32_t>& ranks,
                                           uint32_t turns) const {
  std::vector<uint32_t> turned;
  for (const uint32_t rank : ranks) turned.push_back(system_.turned_rank(rank, turns));
  std::ranges::sort(turned);
  return turned;
}

const SumContracts::Summands& SumContracts::summands(const std::vector<uint32_t>& ranks) {
  const auto known = summands_.find(ranks);
  if (known != summands_.end()) return known->second;
  const bool once = std::ranges::adjacent_find(ranks) == ranks.end();
  return summands_.emplace(ranks, Summands{ranks, once, sum_shapes(symbols_, ranks)}).first->second;
}

void SumContracts::check(const ChunkName& name, const Summands& added, const Symbol& found,
                         const After& after, const Event* writer) {
  SumOrders kept = orders_of(added, found, after);
  kept.replicated = added_alike(name, found);
  kept_ &= kept;
  const Part& part = calls_.part(name.rank, 0);
  const bool keeps = kept.keep(part.contract().order) || takes_extremum(*part.program);
  if (premise(Premise::promised_orders_are_kept, keeps) || system_.joint() || !findings_.empty())
    return;
  const FirstSum& first = sums_.at(least_image(found));
  Finding& finding = findings_.add(Finding::Kind::other_order);
  finding.chunk = name;
  finding.external = writer != nullptr;
  finding.first =
      finding.external
          ? *writer
          : last_store(history_, system_.chunk(name.rank, name.buffer, name.chunk, 0), {});
  finding.alike.push_back(first.chunk);
  if (contents_.trace() == nullptr) return;
  finding.notes.push_back(contents_.trace()->expression(found.order));
  finding.notes.push_back(contents_.trace()->expression(first.order));
}

}  // namespace mscclc::proof
