#include "executor/simulator/cluster_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "ir/program/scratch_layout.h"
#include "ir/support/precondition.h"

namespace mscclc {

PlacedPlan placed_alone(const Program& program) {
  PlacedPlan plan{&program, "", std::vector<uint32_t>(program.ranks.size())};
  std::iota(plan.ranks.begin(), plan.ranks.end(), 0u);
  return plan;
}

uint32_t world_ranks(std::span<const PlacedPlan> plans) {
  uint32_t ranks = 0;
  for (const PlacedPlan& plan : plans) {
    for (const uint32_t r : plan.ranks) ranks = std::max(ranks, r + 1);
  }
  return ranks;
}

ClusterSet::ClusterSet(std::span<const PlacedPlan> plans)
    : plans_(plans.begin(), plans.end()), scratch_(world_ranks(plans)) {
  for (const PlacedPlan& plan : plans) clusters_.emplace_back(*plan.program, plan.name);
}

bool ClusterSet::build(Diagnostics& diagnostics) {
  return std::ranges::all_of(clusters_, [&](Cluster& c) { return c.build(diagnostics); });
}

bool ClusterSet::shares_scratch(size_t plan) const {
  return clusters_[plan].program().launch.reuse_scratch;
}

/// Plans with the same chunks share scratch chunk by chunk, and what protects a chunk protects a
/// place: with other lengths it would be another one. (All other plans may overlap anyhow.)
bool ClusterSet::scratch_agrees_at(uint32_t world_rank, size_t a, size_t b) const {
  if (!plans_[a].has(world_rank) || !plans_[b].has(world_rank)) return true;
  const uint32_t x = plans_[a].rank_at(world_rank), y = plans_[b].rank_at(world_rank);
  if (!same_scratch(clusters_[a].program(), x, clusters_[b].program(), y)) return true;
  const auto same_bytes = [](const BufferLayout& p, const BufferLayout& q) {
    return p.bytes == q.bytes && p.stride == q.stride;
  };
  const std::vector<BufferLayout>& first = clusters_[a].device().ranks[x].buffers;
  const std::vector<BufferLayout>& second = clusters_[b].device().ranks[y].buffers;
  return std::equal(first.begin() + kFirstScratch, first.end(), second.begin() + kFirstScratch,
                    same_bytes);
}

bool ClusterSet::scratch_agrees(Diagnostics& diagnostics) const {
  for (size_t a = 0; a < size(); ++a) {
    for (size_t b = a + 1; b < size() && shares_scratch(a); ++b) {
      for (uint32_t r = 0; shares_scratch(b) && r < scratch_.size(); ++r) {
        if (scratch_agrees_at(r, a, b)) continue;
        diagnostics.error("scratch-sizes", {},
                          fmt::format("'{}' and '{}' share chunks of scratch, which at these "
                                      "sizes of messages are not equally long",
                                      plans_[a].name, plans_[b].name));
        return false;
      }
    }
  }
  return true;
}

/// One stretch of new memory at each rank, as long as the plan needs it that has most there.
bool ClusterSet::place_scratch(Diagnostics& diagnostics) {
  std::vector<uint64_t> bytes(scratch_.size());
  for (size_t p = 0; p < size(); ++p) {
    for (uint32_t r = 0; shares_scratch(p) && r < plans_[p].ranks.size(); ++r) {
      uint64_t& most = bytes[plans_[p].ranks[r]];
      most = std::max(most, clusters_[p].scratch_bytes(r));
    }
  }
  for (size_t r = 0; r < scratch_.size(); ++r) {
    scratch_[r].clear();
    if (!scratch_[r].resize(bytes[r])) return Cluster::no_memory(diagnostics);
  }
  return true;
}

bool ClusterSet::prepare(const std::vector<bool>& in_place, bool poison, const CallsByRank& order,
                         Diagnostics& diagnostics) {
  precondition(in_place.size() == size());
  if (!scratch_agrees(diagnostics) || !place_scratch(diagnostics)) return false;
  for (size_t p = 0; p < size(); ++p) {
    clusters_[p].restart();
    for (uint32_t r = 0; r < plans_[p].ranks.size(); ++r) {
      uint8_t* const scratch = shares_scratch(p) ? scratch_[plans_[p].ranks[r]].data() : nullptr;
      if (!clusters_[p].place(r, in_place[p], scratch)) return Cluster::no_memory(diagnostics);
    }
  }
  // Shared scratch is as the plan needs it that is called first: that one is the last to fill it.
  for (uint32_t r = 0; r < order.size(); ++r) {
    std::vector<uint32_t> by_need;
    for (const uint32_t plan : order[r]) {
      if (std::ranges::find(by_need, plan) == by_need.end()) by_need.push_back(plan);
    }
    for (auto plan = by_need.rbegin(); plan != by_need.rend(); ++plan) {
      clusters_[*plan].fill_scratch(plans_[*plan].rank_at(r), poison);
    }
  }
  return true;
}

/// Wires are counted as the lower rank lists them; the first plan that has one lends its ends.
void ClusterSet::share_channels() {
  struct Ends {
    SimChannelEnd *lower, *higher;
  };
  std::map<std::tuple<ChannelKind, uint32_t, uint32_t, uint32_t>, Ends> wires;
  for (size_t p = 0; p < size(); ++p) {
    std::map<std::tuple<ChannelKind, uint32_t, uint32_t>, uint32_t> counts;
    const Program& program = clusters_[p].program();
    std::vector<SimRank>& states = clusters_[p].states();
    for (uint32_t r = 0; r < plans_[p].ranks.size(); ++r) {
      const std::vector<Channel>& channels = program.ranks[r].channels;
      for (uint32_t c = 0; c < channels.size(); ++c) {
        const Channel& channel = channels[c];
        if (channel.partner == kNone) continue;
        const uint32_t here = plans_[p].ranks[r], there = plans_[p].ranks[channel.peer];
        if (there < here) continue;
        const uint32_t n = counts[{channel.kind, here, there}]++;
        SimChannelEnd*& lower = states[r].channels[c];
        SimChannelEnd*& higher = states[channel.peer].channels[channel.partner];
        const auto [wire, fresh] =
            wires.try_emplace({channel.kind, here, there, n}, Ends{lower, higher});
        lower = wire->second.lower;
        higher = wire->second.higher;
      }
    }
  }
}

bool ClusterSet::run(const CallsByRank& order, uint64_t seed, std::span<CallHooks* const> hooks,
                     Diagnostics& diagnostics, const Adversary* adversary) {
  precondition(hooks.size() == size());
  std::vector<RunningPlan> plans;
  for (size_t p = 0; p < size(); ++p) {
    clusters_[p].reset_states();
    plans.push_back({&clusters_[p], hooks[p], plans_[p].ranks});
  }
  share_channels();
  const CallRunOptions options{.seed = seed, .adversary = adversary};
  return run_calls(plans, CallSequence(order), fibers_, options, diagnostics);
}

bool ClusterSet::check_guards(Diagnostics& diagnostics) const {
  bool intact = true;
  for (const Cluster& cluster : clusters_) intact &= cluster.check_guards(diagnostics);
  for (size_t r = 0; r < scratch_.size(); ++r) {
    for (const bool front : {true, false}) {
      if (!(front ? scratch_[r].front_broken() : scratch_[r].back_broken())) continue;
      diagnostics.error("guard-bytes", {},
                        fmt::format("rank {}: bytes {} the shared scratch have been written", r,
                                    front ? "before" : "after"));
      intact = false;
    }
  }
  return intact;
}

}  // namespace mscclc
