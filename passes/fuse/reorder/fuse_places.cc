#include "passes/fuse/reorder/fuse_places.h"

#include <algorithm>
#include <numeric>

#include "passes/framework/passes.h"

namespace mscclc::fusion {

Places::Places(const Program& program) : program_(program) {
  const uint32_t groups = static_cast<uint32_t>(program.groups.size());
  std::vector<uint32_t> sorted(groups);
  std::iota(sorted.begin(), sorted.end(), 0);
  const auto blocks = [&](uint32_t g) { return program.values(program.groups[g]); };
  std::sort(sorted.begin(), sorted.end(), [&](uint32_t a, uint32_t b) {
    const auto x = blocks(a), y = blocks(b);
    if (std::ranges::equal(x, y)) return a < b;
    return std::ranges::lexicographical_compare(x, y);
  });
  alike_.resize(groups);
  for (uint32_t i = 0; i < groups; ++i) {
    const bool same = i > 0 && std::ranges::equal(blocks(sorted[i - 1]), blocks(sorted[i]));
    alike_[sorted[i]] = same ? alike_[sorted[i - 1]] : sorted[i];
  }
  of_group_.assign(groups, kNone);
}

void Places::start(uint32_t rank) {
  const Rank& here = program_.ranks[rank];
  for (const uint32_t group : seen_) of_group_[group] = kNone;
  seen_.clear();
  blocks_ = count_blocks(here);
  for (const Op& op : here.ops) {
    if (op.group == kNone) continue;
    for (const int64_t b : program_.values(program_.groups[op.group])) {
      blocks_ = std::max(blocks_, static_cast<uint32_t>(b) + 1);
    }
  }
  members_.resize(blocks_);
  std::iota(members_.begin(), members_.end(), 0);
  end_.resize(blocks_);
  std::iota(end_.begin(), end_.end(), 1);
  place_.clear();
  for (const Op& op : here.ops) {
    place_.push_back(op.group == kNone ? op.block : group_place(alike_[op.group]));
  }
}

uint32_t Places::group_place(uint32_t group) {
  if (of_group_[group] != kNone) return of_group_[group];
  seen_.push_back(group);
  for (const int64_t b : program_.values(program_.groups[group])) {
    members_.push_back(static_cast<uint32_t>(b));
  }
  end_.push_back(static_cast<uint32_t>(members_.size()));
  return of_group_[group] = count() - 1;
}

}  // namespace mscclc::fusion
