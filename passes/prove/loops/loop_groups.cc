#include "passes/prove/loops/loop_groups.h"

#include <algorithm>

#include "passes/prove/loops/loop_ties.h"

namespace mscclc::proof {
namespace {

/// Strongly connected components of a graph (Tarjan 1972, without recursion). Each gets a number;
/// those that can be reached from it have smaller ones.
class Components {
 public:
  explicit Components(const std::vector<std::vector<uint32_t>>& next)
      : next_(next), of_(next.size(), kNone), low_(next.size()), index_(next.size(), kNone) {
    for (uint32_t v = 0; v < next.size(); ++v) {
      if (index_[v] == kNone) search(v);
    }
  }
  const std::vector<uint32_t>& of() const { return of_; }
  uint32_t count() const { return count_; }

 private:
  struct Visit {
    uint32_t node;
    size_t edge = 0;
  };

  void search(uint32_t root) {
    std::vector<Visit> path = {enter(root)};
    while (!path.empty()) {
      Visit& at = path.back();
      if (at.edge < next_[at.node].size()) {
        const uint32_t to = next_[at.node][at.edge++];
        if (index_[to] == kNone) {
          path.push_back(enter(to));
        } else if (of_[to] == kNone) {
          low_[at.node] = std::min(low_[at.node], index_[to]);
        }
        continue;
      }
      const uint32_t done = at.node;
      path.pop_back();
      if (!path.empty()) low_[path.back().node] = std::min(low_[path.back().node], low_[done]);
      if (low_[done] == index_[done]) close(done);
    }
  }
  Visit enter(uint32_t node) {
    low_[node] = index_[node] = visited_++;
    open_.push_back(node);
    return {node};
  }
  void close(uint32_t first) {
    while (of_[first] == kNone) {
      of_[open_.back()] = count_;
      open_.pop_back();
    }
    ++count_;
  }

  const std::vector<std::vector<uint32_t>>& next_;
  std::vector<uint32_t> of_, low_, index_, open_;
  uint32_t visited_ = 0, count_ = 0;
};

void add_once(std::vector<uint32_t>& list, uint32_t value) {
  if (std::ranges::find(list, value) == list.end()) list.push_back(value);
}

}  // namespace

LoopGroups::LoopGroups(const System& system) {
  for (uint32_t r = 0; r < system.ranks(); ++r) {
    for (const Op& op : system.program().ranks[r].ops) {
      if (op.loop == kNone) continue;
      const uint64_t at = key(system.block_process(r, op.block), op.loop);
      numbers_.try_emplace(at, static_cast<uint32_t>(numbers_.size()));
    }
  }
  if (numbers_.empty()) return;
  std::vector<Tie> ties;
  for (const Count& count : counts_in_loops(system)) {
    if (const auto finding = tie(system, count, ties)) findings_.push_back(*finding);
  }
  std::vector<std::vector<uint32_t>> takers(numbers_.size());
  for (const Tie& t : ties) {
    takers[loop(t.giver, t.giver_loop)].push_back(loop(t.taker, t.taker_loop));
  }
  make_groups(takers);
}

/// Groups, and which give to which.
void LoopGroups::make_groups(const std::vector<std::vector<uint32_t>>& takers) {
  const Components components(takers);
  group_of_ = components.of();
  groups_.resize(components.count());
  for (uint32_t giver = 0; giver < takers.size(); ++giver) {
    const uint32_t from = group_of_[giver];
    ++groups_[from].loops;
    for (const uint32_t taker : takers[giver]) {
      const uint32_t to = group_of_[taker];
      if (from == to) continue;
      add_once(groups_[from].downstream, to);
      add_once(groups_[to].upstream, from);
    }
  }
}

}  // namespace mscclc::proof
