// Several threads for large programs: each works on some of the ranks. The result must not depend
// on how many there are.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "ir/program/program.h"

namespace mscclc {

/// Consecutive ranks.
struct RankRange {
  uint32_t begin = 0, end = 0;
};

/// How many threads to use for so many ops. `wanted` 0: as many as there are cores if there are
/// enough ops to make it worthwhile, else one.
uint32_t thread_count(uint64_t ops, uint32_t wanted);
/// The same for a program.
uint32_t thread_count(const Program& program, uint32_t wanted);

/// Cuts [first rank, end) into at most `parts` parts with about as many ops each; none is empty.
std::vector<RankRange> cut_ranks(const Program& program, RankRange all, uint32_t parts);

/// Runs work(0) … work(count - 1), each on a thread of its own; returns when all are done. On a
/// single core, and where the system gives no thread, the work is done here, one after the other,
/// so that each has the caches and the memory of the one before. Rethrows the first exception.
void run_threads(uint32_t count, const std::function<void(uint32_t)>& work);

/// True if `test(op)` is for an op of any rank.
template <class Test>
bool any_op(const Program& program, uint32_t threads, const Test& test) {
  const RankRange all{0, static_cast<uint32_t>(program.ranks.size())};
  const std::vector<RankRange> parts = cut_ranks(program, all, thread_count(program, threads));
  std::vector<char> found(parts.size(), false);
  run_threads(static_cast<uint32_t>(parts.size()), [&](uint32_t i) {
    for (uint32_t r = parts[i].begin; r < parts[i].end && !found[i]; ++r) {
      found[i] = std::ranges::any_of(program.ranks[r].ops, test);
    }
  });
  return std::ranges::find(found, true) != found.end();
}

}  // namespace mscclc
