// The other side of a plan's flags at a rank, a GEMM say, as hostile as the program allows: it
// raises flags in any order, late, and has not written a region of the input before; and it takes
// what a region of the output holds when the plan has notified it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "executor/simulator/machine/scheduler.h"
#include "executor/simulator/machine/state.h"
#include "executor/simulator/machine/strand_world.h"
#include "ir/contract/contract.h"
#include "ir/program/program.h"

namespace mscclc {

class OtherSide {
 public:
  /// Where the caller's buffers of the rank lie.
  struct Buffers {
    uint8_t *input, *output;
  };
  /// All of them must outlive it. `chunking`: of the call. REQUIRES: the program has flags.
  OtherSide(Scheduler& scheduler, const Program& program, uint32_t rank, SimRank& state,
            const Chunking& chunking, Buffers buffers);
  /// With strands: it is a process with a clock, `process`, and hands that on by `flags`, as the
  /// rank's blocks do. `world_rank`: its rank of the world.
  void join(StrandWorld& world, std::vector<Clock>& flags, uint32_t world_rank, uint32_t process);

  uint32_t flags() const { return static_cast<uint32_t>(flags_.size()); }
  /// The caller has made the input of a call, which has not begun: what flags are for is taken
  /// away.
  void before_call();
  /// What one flag stands for, in so many calls. REQUIRES: on a fiber.
  void serve(uint32_t flag, uint64_t calls);
  /// Waits until all flags have been served in the rank's call `call`. REQUIRES: on a fiber.
  void await_end(uint64_t call);
  /// The call has ended: compares what was taken with what is there.
  void after_call();

  /// "ready[1] of rank 0", of flags of the output that the plan has not raised, or so many times.
  std::vector<std::string> not_raised() const;
  /// The same of regions that were not there when they were notified, once each.
  const std::vector<std::string>& early() const { return early_; }

 private:
  struct Flag {
    uint32_t array, flag;
    uint8_t* region;
    uint64_t bytes;
    std::vector<uint8_t> kept;        ///< of the input: what it will write; of the output: taken
    std::vector<uint32_t> waits_for;  ///< flags, by their number
    bool was_early = false;
  };
  const FlagArray& array_of(const Flag& flag) const { return program_.flags[flag.array]; }
  void raise(uint32_t number, uint64_t call);
  void take(uint32_t number, uint64_t call);
  void wait_for(uint32_t number, uint64_t call);
  void linger(uint32_t number);
  void touch(const Flag& flag, bool write);
  std::string text(const Flag& flag) const;

  Scheduler& scheduler_;
  const Program& program_;
  const uint32_t rank_;
  SimRank& state_;
  std::vector<Flag> flags_;  ///< by number
  uint64_t served_ = 0;      ///< flags, over all calls
  std::vector<std::string> early_;
  StrandWorld* world_ = nullptr;
  std::vector<Clock>* clocks_ = nullptr;  ///< by flag: what has been published by it
  uint32_t world_rank_ = 0, process_ = 0;
};

}  // namespace mscclc
