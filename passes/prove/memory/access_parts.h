// What accesses to memory are judged by: who has come how far and knows what, and what was done
// before.
#pragma once

#include "passes/prove/memory/history.h"
#include "passes/prove/memory/op_at_hand.h"
#include "passes/prove/memory/op_bytes.h"
#include "passes/prove/memory/races.h"
#include "passes/prove/model/extent.h"
#include "passes/prove/model/finding.h"
#include "passes/prove/model/system.h"
#include "passes/prove/model/value_chains.h"
#include "passes/prove/processes/call_order.h"
#include "passes/prove/processes/knowledge.h"
#include "passes/prove/processes/thread_blocks.h"

namespace mscclc::proof {

/// Parts of one run, which outlive all that refers to them by this.
struct AccessParts {
  const System& system;
  const CallOrder& calls;
  const Knowledge& knowledge;
  ThreadBlocks& blocks;
  const Cuts& cuts;
  const OpBytes& bytes;
  OpAtHand& at_hand;
  History& history;
  const ValueChains& chains;
  Races& races;
};

}  // namespace mscclc::proof
