#include "passes/prove/rounds.h"

#include <algorithm>
#include <set>

#include "passes/prove/rates.h"

namespace mscclc::proof {
namespace {

/// One loop of each class.
std::vector<Loop> classes_of(const Program& program) {
  std::vector<Loop> classes = program.loops;
  std::ranges::sort(classes, finer);
  const auto same = std::ranges::unique(classes, same_rate);
  classes.erase(same.begin(), same.end());
  return classes;
}

/// Numbers of rounds after which a conflict is possible that fewer rounds do not have: round 0 and
/// round 1 differ, and round U takes the unit that round 0 had.
std::set<uint32_t> edges_of(const Program& program, const Loop& loop) {
  std::set<uint32_t> edges = {2};
  for (const Rank& rank : program.ranks) {
    for (const Buffer& buffer : rank.buffers) {
      if (buffer.units == 0 || buffer.unit == 0) continue;
      if (same_rate({buffer.unit, 1}, loop)) edges.insert(buffer.units + 1);
    }
  }
  return edges;
}

}  // namespace

std::vector<std::vector<uint32_t>> round_choices(const Program& program) {
  const std::vector<uint32_t> one(program.loops.size(), 1);
  std::vector<std::vector<uint32_t>> choices = {one};
  for (const Loop& loop : classes_of(program)) {
    for (const uint32_t rounds : edges_of(program, loop)) {
      std::vector<uint32_t>& choice = choices.emplace_back(one);
      for (size_t i = 0; i < choice.size(); ++i) {
        if (same_rate(program.loops[i], loop)) choice[i] = rounds;
      }
    }
  }
  return choices;
}

uint32_t rounds_beyond_credits(const Program& program) {
  constexpr uint32_t kMost = 1000;
  uint64_t credits = 2;
  for (const Rank& rank : program.ranks) {
    for (const Semaphore& semaphore : rank.semaphores) credits += semaphore.initial;
    for (const Op& op : rank.ops) {
      if (op.loop != kNone) continue;
      if (info(op.kind).has(kSignals) || info(op.kind).has(kReleases)) credits += op.dsts;
    }
  }
  return static_cast<uint32_t>(std::min<uint64_t>(credits, kMost));
}

}  // namespace mscclc::proof
