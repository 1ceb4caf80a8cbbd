// Flags of external arrays: when the other side has raised those of the input, and what it learns
// from those of the output (lemmas F1 to F4). It is a process of its own for each flag.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/program/program.h"
#include "passes/prove/model/clocks.h"
#include "passes/prove/model/finding.h"
#include "passes/prove/model/system.h"
#include "passes/prove/processes/call_order.h"
#include "passes/prove/processes/finding_list.h"
#include "passes/prove/processes/thread_blocks.h"

namespace mscclc::proof {

class Flags {
 public:
  /// All of them must outlive it.
  Flags(const System& system, const CallOrder& calls, ThreadBlocks& blocks);

  bool any() const { return !program_.flags.empty(); }
  /// The flag of the input that is for a chunk of this buffer, by its number over all arrays;
  /// kNone: there is none.
  uint32_t of_input(uint32_t rank, uint32_t buffer, uint32_t chunk) const;
  /// When the other side has written what flag `number` of the input is for, or has read what one
  /// of the output is for.
  Event event(uint32_t rank, uint32_t number, bool of_output) const;

  /// What an await shows; false if the block must wait, as the other side may.
  bool await(uint32_t process, const Op& op);
  /// A flag of the output that has been raised as often as it is in a call.
  struct Raised {
    uint32_t array, flag;
    uint32_t op;       ///< the last that has raised it
    const Row* known;  ///< by all that have; good until the next call
  };
  /// The block publishes `news` by an op; adds the flags that are complete with it.
  void notify(uint32_t process, const Op& op, const News& news, std::vector<Raised>& complete);

  /// A rank's call is over: the caller's next work comes after all of the other side, which it lets
  /// `caller` know of.
  void end_call(uint32_t rank, Row& caller, FindingList& findings);
  /// Why a block that is stuck waits at this op: adds what the other side may wait for. False: for
  /// no flag.
  bool explain_stuck(uint32_t rank, const Op& op, Finding& finding) const;

 private:
  struct Flag {
    uint32_t raised = 0;  ///< in this call
    Row known;            ///< what those that raised it knew, and had done
  };
  const Flag* missing(uint32_t rank, const Operand& awaited, Operand& which) const;
  Flag& flag(uint32_t rank, const Operand& o) { return flags_[rank][number(o)]; }
  uint32_t number(const Operand& o) const { return first_[o.buffer] + o.first; }

  const System& system_;
  const Program& program_;
  const CallOrder& calls_;
  ThreadBlocks& blocks_;
  std::vector<uint32_t> first_;               ///< by array: the number of its first flag
  std::vector<std::vector<Flag>> flags_;      ///< by rank and number
  std::vector<std::vector<uint32_t>> waits_;  ///< by rank: processes that wait for a flag
};

}  // namespace mscclc::proof
