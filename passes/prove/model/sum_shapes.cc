#include "passes/prove/model/sum_shapes.h"

#include <algorithm>

#include "ir/ops/trees.h"
#include "ir/support/precondition.h"

namespace mscclc::proof {
namespace {

uint64_t tree_shape(const Symbols& symbols, std::span<const uint32_t> ranks) {
  if (ranks.size() == 1) return symbols.shape_of(ranks[0]);
  const size_t cut = first_of_tree(static_cast<uint32_t>(ranks.size()));
  return symbols.joined(tree_shape(symbols, ranks.first(cut)),
                        tree_shape(symbols, ranks.subspan(cut)));
}

}  // namespace

SumShapes sum_shapes(const Symbols& symbols, std::span<const uint32_t> ranks) {
  precondition([&] { return !ranks.empty() && std::ranges::is_sorted(ranks); });
  SumShapes shapes{symbols.shape_of(ranks[0]), tree_shape(symbols, ranks)};
  std::vector<uint64_t> all = {shapes.ranks};
  for (const uint32_t rank : ranks.subspan(1)) {
    all.push_back(symbols.shape_of(rank));
    shapes.ranks = symbols.joined(shapes.ranks, all.back());
  }
  shapes.exact = symbols.together(std::move(all));
  return shapes;
}

}  // namespace mscclc::proof
