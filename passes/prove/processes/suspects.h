// Whose values races make uncertain. A plan with races has other mistakes, too, which show in the
// results. The run that finds the races takes one order of many; so results that come through an
// access which a race has put into the wrong order say nothing. Others are what the order gives
// that is meant.
#pragma once

#include <cstdint>
#include <unordered_set>

namespace mscclc::proof {

struct Suspects {
  /// By rank and op: loads that have perhaps come too early, or too late; stores of which another
  /// one may be the last.
  std::unordered_set<uint64_t> loads, stores;
  /// Chunks (of System) of the caller's that it may write while the plan does.
  std::unordered_set<uint64_t> callers;

  static uint64_t key(uint32_t rank, uint32_t op) { return uint64_t{rank} << 32 | op; }
};

}  // namespace mscclc::proof
