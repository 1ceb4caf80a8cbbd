// Plans whose calls follow one another on the same ranks of this machine, and what they share, as
// passes/prove/prove.h has it: the count of calls, channels (the n-th memory channel between two
// ranks is the same for all plans, and so is the n-th port), and the scratch of those that say so.
#pragma once

#include <algorithm>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "executor/simulator/call_run.h"
#include "executor/simulator/cluster.h"

namespace mscclc {

/// A plan on some ranks of the world.
struct PlacedPlan {
  const Program* program = nullptr;
  std::string name = {};             ///< for messages
  std::vector<uint32_t> ranks = {};  ///< by rank of the plan: different ranks of the world

  bool has(uint32_t world_rank) const { return rank_at(world_rank) < ranks.size(); }
  /// Rank of the plan at a rank of the world, which it has.
  uint32_t rank_at(uint32_t world_rank) const {
    return static_cast<uint32_t>(std::ranges::find(ranks, world_rank) - ranks.begin());
  }
};

/// A plan that is alone: its ranks are those of the world.
PlacedPlan placed_alone(const Program& program);

/// Ranks of the world that these plans run in: up to the highest that one has.
uint32_t world_ranks(std::span<const PlacedPlan> plans);

class ClusterSet {
 public:
  /// The programs must outlive the set.
  explicit ClusterSet(std::span<const PlacedPlan> plans);

  /// Lowers all programs. Once, before all else.
  [[nodiscard]] bool build(Diagnostics& diagnostics);
  /// Makes new memory for calls of `order`, the first of which has number 0. Plans that share
  /// scratch chunk by chunk must have chunks of one length: else it says so, and returns false.
  /// REQUIRES: each cluster fits its call, and `in_place` says of each whether it runs in place.
  [[nodiscard]] bool prepare(const std::vector<bool>& in_place, bool poison,
                             const CallsByRank& order, Diagnostics& diagnostics);
  /// Runs these calls, once; `hooks` are by plan. See Cluster::run(). REQUIRES: prepare().
  [[nodiscard]] bool run(const CallsByRank& order, uint64_t seed, std::span<CallHooks* const> hooks,
                         Diagnostics& diagnostics, const Adversary* adversary);
  /// Reports bytes written beside a buffer.
  [[nodiscard]] bool check_guards(Diagnostics& diagnostics) const;

  size_t size() const { return clusters_.size(); }
  Cluster& operator[](size_t plan) { return clusters_[plan]; }

 private:
  bool shares_scratch(size_t plan) const;
  [[nodiscard]] bool scratch_agrees(Diagnostics& diagnostics) const;
  bool scratch_agrees_at(uint32_t world_rank, size_t a, size_t b) const;
  [[nodiscard]] bool place_scratch(Diagnostics& diagnostics);
  void share_channels();

  const std::vector<PlacedPlan> plans_;
  std::deque<Cluster> clusters_;
  std::vector<SimBuffer> scratch_;  ///< by rank of the world: of the plans that share it
  FiberPool fibers_;
};

}  // namespace mscclc
