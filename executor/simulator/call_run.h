// Calls of plans on all ranks of a world, one after the other on each rank: the fibers of callers,
// thread blocks (or their strands) and proxies of ports.
//
// The blocks of all plans are there from the beginning. A rank's caller begins its calls in order,
// each when the blocks of the one before have ended; blocks of other plans sleep meanwhile.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "executor/simulator/cluster.h"
#include "executor/simulator/machine/machine.h"
#include "executor/simulator/other_side.h"
#include "executor/simulator/run_spec.h"

namespace mscclc {

/// A plan in a run.
struct RunningPlan {
  Cluster* cluster;
  CallHooks* hooks;
  std::vector<uint32_t> world;  ///< by rank of the plan: rank of the world
};

/// Which plan each call of each rank is of.
class CallSequence {
 public:
  /// Every rank calls the only plan so often.
  explicit CallSequence(uint64_t calls) : calls_(calls) {}
  /// `order` must outlive it.
  explicit CallSequence(const CallsByRank& order) : order_(&order) {}
  uint64_t calls(uint32_t world_rank) const {
    return order_ == nullptr ? calls_ : (*order_)[world_rank].size();
  }
  uint32_t plan(uint32_t world_rank, uint64_t call) const {
    return order_ == nullptr ? 0 : (*order_)[world_rank][call];
  }
  /// Calls of one plan at a rank.
  uint64_t calls_of(uint32_t plan, uint32_t world_rank) const;

 private:
  uint64_t calls_ = 0;
  const CallsByRank* order_ = nullptr;
};

struct CallRunOptions {
  uint64_t first_call = 0;  ///< the number of every rank's first call
  uint64_t seed = 0;
  const Adversary* adversary = nullptr;
};

/// A thread block of a run, or one of its strands. Ranks are those of the plan.
struct BlockTask {
  uint32_t plan, rank, block;
  const SimMachine* machine;
  uint64_t calls_done = 0;
  bool ended = false;
};

/// Runs the calls; see Cluster::run(). REQUIRES: states are reset, and what the plans share is the
/// same in them.
[[nodiscard]] bool run_calls(std::span<const RunningPlan> plans, const CallSequence& calls,
                             FiberPool& fibers, const CallRunOptions& options,
                             Diagnostics& diagnostics);

/// Adds to `diagnostics` which block waits for which, and for which flags the other sides do.
/// Blocks that have ended are not waiting.
void report_hang(std::span<const RunningPlan> plans, const std::deque<BlockTask>& blocks,
                 std::span<const OtherSide* const> others, Diagnostics& diagnostics);

}  // namespace mscclc
