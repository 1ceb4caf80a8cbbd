// How often each thread block gives to and takes from each count, stretch by stretch of its ops:
// straight code, a loop, straight code …; and whether givers and takers match.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "passes/prove/model/finding.h"
#include "passes/prove/model/system.h"

namespace mscclc::proof {

/// Ops of one block on one count that stand side by side, in one loop or in none.
struct Stretch {
  uint32_t loop = kNone;  ///< of the program; kNone: straight code
  uint64_t times = 0;     ///< in a round
  uint32_t op = kNone;    ///< the first of the ops
};

/// What one block does to one count, in its order.
struct Use {
  uint32_t process = kNone;
  std::vector<Stretch> stretches;
};

/// A count: an end of a channel, a semaphore, or a barrier, to which every member gives and from
/// which every member takes.
struct Count {
  bool barrier = false;
  uint64_t initial = 0;
  std::vector<Use> givers, takers;
};

/// All counts of a system that are used in a loop, in a fixed order.
std::vector<Count> counts_in_loops(const System& system);

/// Two loops of which one gives what the other takes.
struct Tie {
  uint32_t giver = kNone, giver_loop = kNone;
  uint32_t taker = kNone, taker_loop = kNone;
};

/// The ties that a count makes, added to `ties`; or why its rounds do not pair up.
std::optional<Finding> tie(const System& system, const Count& count, std::vector<Tie>& ties);

}  // namespace mscclc::proof
