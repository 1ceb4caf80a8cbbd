// Rounds of pipelines: loops that tie each other go in step, and come after those that give to
// them. A run that gets on so shows that any number of rounds does (lemma R1).
#pragma once

#include <cstdint>
#include <vector>

#include "passes/prove/loops/loop_groups.h"
#include "passes/prove/model/extent.h"
#include "passes/prove/processes/call_order.h"
#include "passes/prove/processes/finding_list.h"
#include "passes/prove/processes/thread_blocks.h"

namespace mscclc::proof {

class LoopRounds {
 public:
  /// `in_step`: loops of a group wait for each other. All of them must outlive it.
  LoopRounds(const LoopGroups& groups, const Cuts& cuts, const CallOrder& calls,
             ThreadBlocks& blocks, bool in_step);

  /// How many rounds a loop of the program has.
  uint32_t count(uint32_t loop) const { return cuts_.rounds(loop); }
  /// Begins a round of a loop of the program, or holds the block until it may.
  bool begin(uint32_t process, uint32_t loop);
  /// Goes to the next op: the body of a pipeline begins again until all rounds are done.
  void next_op(uint32_t process, const std::vector<Op>& ops);
  /// Nothing moves any more: lets loops go on out of step, if any is held.
  bool release_held();
  /// Reports the blocks that did not get on in step, and went on without, if there are any.
  void report(FindingList& findings) const;

 private:
  /// How far the loops of a group are, in rounds of all calls.
  struct Progress {
    uint32_t opened = 0;         ///< that they may have begun
    uint32_t done = 0;           ///< that all of them have done
    uint32_t ahead = 0;          ///< how many have done one more
    std::vector<uint32_t> held;  ///< processes that have come to the next one
  };

  void open(uint32_t group);
  void end(ThreadBlock& block);
  void wake_held(uint32_t group);

  const LoopGroups& groups_;
  const Cuts& cuts_;
  const CallOrder& calls_;
  ThreadBlocks& blocks_;
  std::vector<Progress> progress_;  ///< by group of loops
  std::vector<uint32_t> begun_;     ///< by loop: rounds, in all calls
  bool in_step_;                    ///< loops still wait for each other
  std::vector<Event> released_;     ///< blocks that did not get on in step, and went on without
};

}  // namespace mscclc::proof
