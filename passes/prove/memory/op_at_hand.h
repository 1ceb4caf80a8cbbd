// The op that is being run: where in it the run is, and what it has read so far. Every access of it
// is judged by that.
#pragma once

#include <cstdint>
#include <vector>

#include "passes/prove/model/clocks.h"
#include "passes/prove/model/extent.h"
#include "passes/prove/model/finding.h"
#include "passes/prove/model/value_chains.h"

namespace mscclc::proof {

/// What accesses: the op at hand, and what its process knows: a row, and that so many ops of
/// `knower` are over: of the block itself, or of the one that posted what a port does.
struct Actor {
  Event event;
  const Row* known;
  uint32_t knower;
  uint32_t settled;
};

/// What those threads learn from packets that have waited for one of these bytes.
struct LearnedNews {
  News news;
  Extent extent;
};

struct OpAtHand {
  bool sentinel = false;    ///< its packets are sentinel words
  uint32_t pair = 0;        ///< of a pairwise op
  bool sum_before = false;  ///< what it stores may take the place of the sum that it was made of
  uint64_t round = 0;       ///< which round and piece: as units of scratch remember it
  Provenance nodes{Provenance::Readers::thread};  ///< values that it has read
  std::vector<LearnedNews> learned;  ///< what each thread learns from packets before it stores

  /// Nothing has been read yet.
  void begin() {
    nodes.clear();
    learned.clear();
  }
};

}  // namespace mscclc::proof
