// Sums of several terms, and which contracts about the bits of sums the results keep
// (docs/bits.md).
#include <algorithm>

#include "ir/ops/trees.h"
#include "passes/prove/model/premise.h"
#include "passes/prove/model/sum_shapes.h"
#include "passes/prove/run/run.h"

namespace mscclc::proof {

Symbol Run::tree_of(std::span<const Symbol> terms) {
  if (terms.size() == 1) return terms[0];
  const size_t first = first_of_tree(static_cast<uint32_t>(terms.size()));
  return sum_of(tree_of(terms.first(first)), tree_of(terms.subspan(first)));
}

Symbol Run::exact_of(std::span<const Symbol> terms) {
  Symbol in_turn = terms[0];  // says whether they can be added up at all
  for (const Symbol& term : terms.subspan(1)) in_turn = sum_of(in_turn, term);
  if (!in_turn.known()) return in_turn;
  Symbol sum = turned_.exact(terms);
  sum.size = in_turn.size;
  return sum;
}

/// A sum is made in one order wherever it is kept: here, and at all ranks that this one stands for,
/// which hold what it becomes when they turn. Sums that turn into one another are filed under the
/// turn with the least number.
bool Run::added_alike(const ChunkName& name, const Symbol& found) {
  const uint32_t turns = system_.symmetry().turns();
  const Symbol sum = found.plain();
  const uint64_t least = least_image(sum);
  bool alike = true;
  for (uint32_t k = 0; k < turns; ++k) {
    const Symbol image = turned_.turned(sum, k);
    if (image.low != least) continue;
    const auto [first, added] = sums_.try_emplace(least, FirstSum{image.order, name});
    alike &= premise(Premise::sums_are_made_alike, first->second.order == image.order);
  }
  return alike;
}

uint64_t Run::least_image(const Symbol& sum) const {
  uint64_t least = sum.low;
  for (uint32_t k = 1; k < system_.symmetry().turns(); ++k) {
    least = std::min(least, turned_.turned(sum.plain(), k).low);
  }
  return least;
}

/// In which of the orders of contracts the contributions of `ranks` (ascending) were added, here
/// and at all ranks that this one stands for.
SumOrders Run::orders_of(const std::vector<uint32_t>& ranks, const Symbol& found) const {
  SumOrders kept{.replicated = true, .ranks = true, .tree = true, .exact = true};
  const bool once = std::ranges::adjacent_find(ranks) == ranks.end();
  if (!premise(Premise::one_input_of_each_rank, once)) return {.replicated = true};
  const bool all = ranks.size() == system_.ranks();  // which turn into all ranks
  const SumShapes* wanted = &shapes(ranks);
  for (uint32_t k = 0; k < system_.symmetry().turns(); ++k) {
    if (k > 0 && !all) wanted = &shapes(turned(ranks, k));
    const uint64_t shape = turned_.turned(found.plain(), k).shape;
    kept.ranks &= premise(Premise::sums_in_rank_order, shape == wanted->ranks);
    kept.tree &= premise(Premise::sums_along_the_tree, shape == wanted->tree);
    kept.exact &= premise(Premise::sums_are_exact, shape == wanted->exact);
  }
  return kept;
}

std::vector<uint32_t> Run::turned(const std::vector<uint32_t>& ranks, uint32_t turns) const {
  std::vector<uint32_t> turned;
  for (const uint32_t rank : ranks) turned.push_back(system_.turned_rank(rank, turns));
  std::ranges::sort(turned);
  return turned;
}

const SumShapes& Run::shapes(const std::vector<uint32_t>& ranks) const {
  const auto known = shapes_.find(ranks);
  if (known != shapes_.end()) return known->second;
  return shapes_.emplace(ranks, sum_shapes(symbols_, ranks)).first->second;
}

/// A result that holds the sum of `ranks` that is promised.
void Run::check_sum(const ChunkName& name, const std::vector<uint32_t>& ranks,
                    const Symbol& found) {
  SumOrders kept = orders_of(ranks, found);
  kept.replicated = added_alike(name, found);
  facts_.orders &= kept;
  const bool keeps = kept.keep(part_of(name.rank, 0).contract().order);
  if (premise(Premise::promised_orders_are_kept, keeps) || system_.joint() || !findings_.empty())
    return;
  Finding& finding = add_finding(Finding::Kind::other_order);
  finding.chunk = name;
  finding.first = last_store(system_.chunk(name.rank, name.buffer, name.chunk, 0), {});
  finding.alike.push_back(sums_.at(least_image(found)).chunk);
  if (!trace_) return;
  finding.notes.push_back(trace_->expression(found.order));
  finding.notes.push_back(trace_->expression(sums_.at(least_image(found)).order));
}

}  // namespace mscclc::proof
