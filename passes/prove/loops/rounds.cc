#include "passes/prove/loops/rounds.h"

#include <algorithm>
#include <set>

#include "passes/prove/loops/rates.h"
#include "passes/prove/model/premise.h"

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

/// By class, numbers of rounds after which a conflict is possible that fewer rounds do not have:
/// round 0 and round 1 differ, and round U takes the unit that round 0 had.
std::vector<std::set<uint32_t>> edges_of(const Program& program, const std::vector<Loop>& classes) {
  std::vector<std::set<uint32_t>> edges(classes.size(), {premise(Premise::two_rounds, 2u, 1u)});
  for (const Rank& rank : program.ranks) {
    for (const Buffer& buffer : rank.buffers) {
      if (buffer.units == 0 || buffer.unit == 0) continue;
      const Loop loop{buffer.unit, 1};
      const auto own = std::ranges::lower_bound(classes, loop, finer);
      if (own == classes.end() || !same_rate(*own, loop)) continue;
      edges[static_cast<size_t>(own - classes.begin())].insert(
          premise(Premise::one_round_more_than_units, buffer.units + 1, 2u));
    }
  }
  return edges;
}

}  // namespace

std::vector<std::vector<uint32_t>> round_choices(const Program& program) {
  const std::vector<uint32_t> one(program.loops.size(), 1);
  std::vector<std::vector<uint32_t>> choices = {one};
  const std::vector<Loop> classes = classes_of(program);
  const std::vector<std::set<uint32_t>> edges = edges_of(program, classes);
  for (size_t c = 0; c < classes.size(); ++c) {
    for (const uint32_t rounds : edges[c]) {
      std::vector<uint32_t>& choice = choices.emplace_back(one);
      for (size_t i = 0; i < choice.size(); ++i) {
        if (same_rate(program.loops[i], classes[c])) choice[i] = rounds;
      }
    }
  }
  return choices;
}

}  // namespace mscclc::proof
