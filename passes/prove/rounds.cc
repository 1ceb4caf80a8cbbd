#include "passes/prove/rounds.h"

#include <algorithm>

namespace mscclc::proof {

std::vector<std::vector<uint32_t>> round_choices(const Program& program) {
  if (program.loops.empty()) return {{}};
  uint32_t credit = 0;
  for (const Rank& rank : program.ranks) {
    for (const Semaphore& s : rank.semaphores) credit = std::max(credit, std::min(s.initial, 8u));
  }
  const auto finer = [](const Loop& a, const Loop& b) {
    return uint64_t{a.chunks} * b.unit > uint64_t{b.chunks} * a.unit;
  };
  std::vector<Loop> classes = program.loops;
  std::sort(classes.begin(), classes.end(), [&](auto& a, auto& b) { return finer(b, a); });
  std::vector<uint32_t> one(program.loops.size(), 1), many;
  for (const Loop& loop : program.loops) {
    uint32_t more = 0;
    for (size_t i = 1; i < classes.size(); ++i) {
      more += finer(classes[i], classes[i - 1]) && !finer(classes[i], loop);
    }
    many.push_back(3 + credit + 2 * more);
  }
  return {one, many};
}

}  // namespace mscclc::proof
