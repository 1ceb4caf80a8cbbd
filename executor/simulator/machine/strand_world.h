// What the strands and proxies of an adversarial run share: which of them knows of what, and what
// is late.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "executor/simulator/machine/adversary.h"
#include "executor/simulator/machine/late_memory.h"
#include "executor/simulator/machine/state.h"

namespace mscclc {

/// A place where several processes meet: what each has brought, and what all went away with.
struct StrandMeeting {
  uint32_t arrived = 0;
  uint64_t generation = 0;
  Clock joining, joined;
};

/// The clocks that go with a SimChannelEnd.
struct ChannelClocks {
  /// By signal, from the first that has not been taken: what it and all before it published.
  std::deque<Clock> arrived;
  /// Port: what goes with the entries of the queue.
  struct Posted {
    Clock clock;
    bool relaxed = false;
    uint64_t call = 0;
  };
  Posted posted[SimChannelEnd::kQueue];
  /// Adds a signal that publishes `clock`; nullptr: nothing.
  void arrive(const Clock* clock);
  Clock last;  ///< what the last signal and all before it published
};

/// A rank of a plan.
struct RankClocks {
  std::vector<ChannelClocks> ends;
  std::vector<ChannelClocks*> channels;  ///< as in SimRank
  std::vector<Clock> semaphores, flags;
  std::vector<StrandMeeting> barriers, blocks;  ///< blocks: where the strands of each meet
  std::vector<uint32_t> processes;              ///< its strands, and the other side of its flags
};

/// Ranks are those of the world, calls those of the rank, whatever plans they are of.
struct StrandWorld {
  StrandWorld(Scheduler& scheduler, const Adversary& adversary)
      : scheduler(scheduler), adversary(adversary) {}

  /// The order of the first hold that fits, to linger by; 0: there is none.
  uint64_t hold(Hold::What what, uint32_t rank, uint32_t op, uint32_t strand, uint64_t call) const;
  /// Lingers if a hold says so. REQUIRES: on a fiber.
  void linger(Hold::What what, uint32_t rank, uint32_t op, uint32_t strand, uint64_t call) {
    const uint64_t order = hold(what, rank, op, strand, call);
    if (order > 0) scheduler.linger(order);
  }
  /// Lingers while accesses of these processes are held: their kernel has not ended. REQUIRES: on a
  /// fiber.
  void await_held(const std::vector<uint32_t>& processes);
  /// A call of the rank has returned that these processes made: all they did is done, and the
  /// rank's next call knows of it.
  void end_call(uint32_t rank, const std::vector<uint32_t>& processes);

  Scheduler& scheduler;
  const Adversary& adversary;
  LateMemory memory;
  std::vector<std::vector<RankClocks>> plans;  ///< by plan and rank of the plan
  std::vector<Clock> done;    ///< by rank: what all its calls have done that have returned
  std::vector<Clock> clocks;  ///< by process
};

}  // namespace mscclc
