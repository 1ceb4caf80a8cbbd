#include "passes/prove/history.h"

#include <algorithm>

namespace mscclc::proof {

bool ValueChains::follow(std::span<const uint32_t> from, const Event& event, uint32_t rank,
                         uint32_t position) {
  seen_.resize(nodes_.size(), 0);
  if (++search_ == 0) {  // the numbers of searches begin again
    std::ranges::fill(seen_, 0u);
    search_ = 1;
  }
  open_.clear();
  const auto reach = [&](uint32_t i) {
    if (std::exchange(seen_[i], search_) != search_) open_.push_back(i);
  };
  for (const uint32_t i : from) reach(i);
  while (!open_.empty()) {
    const Node& node = nodes_[open_.back()];
    open_.pop_back();
    if (node.event.process == event.process && node.event.time == event.time &&
        node.position == position) {
      return true;
    }
    if (node.rank == rank && node.event.call > event.call) return true;
    if (node.event.call < event.call) continue;  // older than what is looked for
    for (uint32_t i = node.first; i < node.first + node.count; ++i) reach(parents_[i]);
  }
  return false;
}

}  // namespace mscclc::proof
