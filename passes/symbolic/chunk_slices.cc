#include "passes/symbolic/chunk_slices.h"

#include <algorithm>
#include <numeric>

#include "ir/program/rank_parts.h"

namespace mscclc::symbolic {

/// Where part i of `parts` of `count` chunks begins, within its chunk.
ChunkSlices::Cut ChunkSlices::cut(uint64_t i, uint32_t parts, uint32_t count) {
  const uint64_t numerator = i * count % parts, divisor = std::gcd(numerator, uint64_t{parts});
  return {numerator / divisor, parts / divisor};
}

ChunkSlices::ChunkSlices(const Program& program) {
  if (!any_op(program, 0, [](const Op& op) { return op.parts != 0; })) return;
  std::vector<std::pair<uint32_t, uint32_t>> seen;  // parts, chunks
  for (const Rank& rank : program.ranks) {
    for (const Op& op : rank.ops) {
      if (op.parts == 0) continue;
      const std::pair<uint32_t, uint32_t> kind{op.parts, program.operands[op.operands].count};
      if (!seen.empty() && seen.back() == kind) continue;
      if (std::find(seen.begin(), seen.end(), kind) == seen.end()) seen.push_back(kind);
    }
  }
  for (const auto& [parts, count] : seen) {
    for (uint32_t i = 1; i < parts; ++i) cuts_.push_back(cut(i, parts, count));
  }
  std::erase_if(cuts_, [](const Cut& c) { return c.numerator == 0; });
  std::sort(cuts_.begin(), cuts_.end());
  cuts_.erase(std::unique(cuts_.begin(), cuts_.end()), cuts_.end());
}

uint32_t ChunkSlices::position(uint32_t i, uint32_t parts, uint32_t count) const {
  const uint32_t chunk = static_cast<uint32_t>(uint64_t{i} * count / parts);
  const Cut at = cut(i, parts, count);
  uint32_t slice = chunk * per_chunk();
  if (at.numerator != 0) {
    const auto found = std::lower_bound(cuts_.begin(), cuts_.end(), at);
    slice += static_cast<uint32_t>(found - cuts_.begin()) + 1;
  }
  return slice;
}

}  // namespace mscclc::symbolic
