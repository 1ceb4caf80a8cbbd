// Runs a plan once, for some calls in a row, and keeps for every process what it knows of the
// others. Who meets whom does not depend on the schedule (`find_shared` refuses plans where it
// does), so what this run shows holds for all: docs/design/proofs.md has the argument.
//
// In this run every process goes as far as it can, except in loops, which go in step (LoopGroups);
// ports move their data at once.
//
// Its parts: the processes (passes/prove/processes), what they do to memory (passes/prove/memory),
// and what their calls leave (results.h).
#pragma once

#include <cstdint>
#include <vector>

#include "ir/program/program.h"
#include "passes/prove/loops/loop_groups.h"
#include "passes/prove/memory/access_order.h"
#include "passes/prove/memory/access_parts.h"
#include "passes/prove/memory/chunk_contents.h"
#include "passes/prove/memory/data_moves.h"
#include "passes/prove/memory/history.h"
#include "passes/prove/memory/op_at_hand.h"
#include "passes/prove/memory/op_bytes.h"
#include "passes/prove/memory/op_value.h"
#include "passes/prove/memory/packet_slots.h"
#include "passes/prove/memory/races.h"
#include "passes/prove/model/extent.h"
#include "passes/prove/model/finding.h"
#include "passes/prove/model/system.h"
#include "passes/prove/model/value_chains.h"
#include "passes/prove/model/values.h"
#include "passes/prove/processes/block_barriers.h"
#include "passes/prove/processes/call_order.h"
#include "passes/prove/processes/counters.h"
#include "passes/prove/processes/finding_list.h"
#include "passes/prove/processes/flags.h"
#include "passes/prove/processes/knowledge.h"
#include "passes/prove/processes/loop_rounds.h"
#include "passes/prove/processes/run_options.h"
#include "passes/prove/processes/thread_blocks.h"
#include "passes/prove/run/results.h"

namespace mscclc::proof {

class Run {
 public:
  /// All of them must outlive it. REQUIRES: `groups` is of `system`, and has found nothing.
  Run(const System& system, const LoopGroups& groups, const Symbols& symbols, RunOptions options);
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;
  /// Runs all calls, or as far as it gets.
  void go();
  /// Have all calls come to their end?
  bool finished() const { return calls_.all_ended(); }
  const std::vector<Finding>& findings() const { return findings_.all(); }
  RunFacts facts() const;
  /// What the races that were found make uncertain.
  const Suspects& suspects() const { return races_.suspects(); }

 private:
  /// REQUIRES: the parts have been made.
  AccessParts access_parts();
  void enter_call(uint32_t rank);
  void leave_call(uint32_t rank);
  void caller_touches(uint32_t rank, uint32_t call, bool leaving);
  void other_side_reads(uint32_t rank, const Flags::Raised& raised);
  void notify(uint32_t process, const Op& op);
  bool explain_flags(uint32_t process);
  void check_met(uint32_t rank, uint32_t call);
  void advance(uint32_t process);
  bool do_op(uint32_t process, const Op& op);
  bool do_control(uint32_t process, const Op& op, const OpInfo& row);
  bool is_stuck(uint32_t process) const;
  void report_stuck();

  const System& system_;
  const Program& program_;
  const RunOptions options_;
  FindingList findings_;
  Cuts cuts_;
  bool meets_ = true;  ///< no rank has left a call before all were in it

  // Processes
  CallOrder calls_;
  ThreadBlocks blocks_;
  Knowledge knowledge_;
  LoopRounds rounds_;
  Counters counters_;
  BlockBarriers barriers_;
  Flags flags_;
  std::vector<uint32_t> left_;  ///< by rank: blocks that have not done its call

  // Memory
  OpAtHand at_hand_;
  History history_;
  ValueChains chains_;
  OpBytes bytes_;
  ChunkContents contents_;
  ExternalRows externals_;
  OpValue value_;
  Races races_;
  AccessOrder order_;
  PacketSlots slots_;
  DataMoves moves_;
  Results results_;
};

}  // namespace mscclc::proof
