#include "passes/prove/history.h"

#include <unordered_set>

namespace mscclc::proof {

bool ValueChains::follow(std::span<const uint32_t> from, const Event& event, uint32_t rank,
                         uint32_t position) const {
  std::vector<uint32_t> open(from.begin(), from.end());
  std::unordered_set<uint32_t> seen(from.begin(), from.end());
  while (!open.empty()) {
    const Node& node = nodes_[open.back()];
    open.pop_back();
    if (node.event.process == event.process && node.event.time == event.time &&
        node.position == position) {
      return true;
    }
    if (node.rank == rank && node.event.call > event.call) return true;
    if (node.event.call < event.call) continue;  // older than what is looked for
    for (uint32_t i = node.first; i < node.first + node.count; ++i) {
      if (seen.insert(parents_[i]).second) open.push_back(parents_[i]);
    }
  }
  return false;
}

}  // namespace mscclc::proof
