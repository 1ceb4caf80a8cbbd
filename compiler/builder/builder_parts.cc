// What builders that had the same declarations made of the ops of different ranks, in one: what is
// numbered in the order of its first use gets the numbers that one builder would have given.
#include "compiler/builder/builder_state.h"

namespace mscclc {
namespace {

template <class Map>
auto by_number(const Map& numbers) {
  std::vector<const typename Map::key_type*> keys(numbers.size());
  for (const auto& [key, number] : numbers) keys[number] = &key;
  return keys;
}

bool is_identity(const std::vector<uint32_t>& numbers) {
  for (uint32_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] != i) return false;
  }
  return true;
}

}  // namespace

/// By group of `part`: ours.
std::vector<uint32_t> BuilderState::take_groups(const BuilderState& part) {
  std::vector<uint32_t> ours;
  for (const std::vector<int64_t>* blocks : by_number(part.groups)) {
    const auto next = static_cast<uint32_t>(program.groups.size());
    const auto [group, added] = groups.try_emplace(*blocks, next);
    if (added) program.groups.push_back(program.append(*blocks));
    ours.push_back(group->second);
  }
  return ours;
}

/// By class of pipelines of `part`: ours. Class 0 is that of what stands in none.
std::vector<uint32_t> BuilderState::take_round_classes(const BuilderState& part) {
  std::vector<const std::pair<uint64_t, uint64_t>*> ratios(part.round_classes.size());
  for (const auto& [ratio, id] : part.round_classes) ratios[id - 1] = &ratio;
  std::vector<uint32_t> ours = {0};
  for (const auto* ratio : ratios) {
    const auto next = static_cast<uint32_t>(round_classes.size() + 1);
    ours.push_back(round_classes.try_emplace(*ratio, next).first->second);
  }
  return ours;
}

void BuilderState::take_counts(BuilderState& part, RankRange of) {
  const std::vector<uint32_t> classes = take_round_classes(part);
  const auto translate = [&](Tally& tally) { tally.rounds = classes[tally.rounds]; };
  for (uint32_t r = of.begin; r < of.end; ++r) {
    RankState& theirs = part.ranks[r];
    for (ChannelEnd& end : theirs.ends) {
      translate(end.signals);
      translate(end.waits);
    }
    for (SemaphoreCount& count : theirs.semaphores) {
      translate(count.releases);
      translate(count.acquires);
    }
    ranks[r].ends.swap(theirs.ends);
    ranks[r].semaphores.swap(theirs.semaphores);
    ranks[r].entered = theirs.entered;
  }
  for (const auto& [key, count] : part.more_tallies) {
    more_tallies[{key.first, classes[key.second]}] = count;
  }
}

void BuilderState::take_ops(BuilderState& part, RankRange of, const std::vector<uint32_t>& sites) {
  const std::vector<uint32_t> ours = take_groups(part);
  const auto loops = static_cast<uint32_t>(program.loops.size());
  const bool same = loops == 0 && is_identity(ours);
  const bool same_sites = is_identity(sites);
  for (uint32_t r = of.begin; r < of.end; ++r) {
    std::vector<Op>& ops = program.ranks[r].ops;
    ops.swap(part.program.ranks[r].ops);
    program.ranks[r].blocks = part.program.ranks[r].blocks;
    for (Op& op : ops) {
      if (same) break;
      if (op.loop != kNone) op.loop += loops;
      if (op.group != kNone) op.group = ours[op.group];
    }
  }
  if (!same_sites) {
    part.program.locations.for_each([&](Location& l) { l.site = sites[l.site]; });
  }
  program.loops.insert(program.loops.end(), part.program.loops.begin(), part.program.loops.end());
  program.adopt_arenas(part.program);
}

/// A buffer of units has those of the pipeline that uses it first, of whatever rank. False if its
/// pipelines differ.
bool BuilderState::take_units(const BuilderState& part) {
  for (uint32_t r = 0; r < program.ranks.size(); ++r) {
    std::vector<Buffer>& buffers = program.ranks[r].buffers;
    for (size_t b = kFirstScratch; b < buffers.size(); ++b) {
      const uint64_t unit = part.program.ranks[r].buffers[b].unit;
      if (buffers[b].unit == 0) buffers[b].unit = unit;
      if (unit != 0 && unit != buffers[b].unit) return false;
    }
  }
  return true;
}

bool BuilderState::take(BuilderState& part, RankRange of, const std::vector<uint32_t>& sites) {
  ops += part.ops;
  blocks += part.blocks;
  if (ops > max_ops || blocks > max_ops) return false;
  if (!take_units(part)) return false;
  take_counts(part, of);
  take_ops(part, of, sites);
  barrier_marks.merge(part.barrier_marks);
  for (const EmptyBlock& empty : part.empty_blocks) {
    if (empty_blocks.size() < kMaxEmptyBlocks) empty_blocks.push_back(empty);
  }
  return true;
}

}  // namespace mscclc
