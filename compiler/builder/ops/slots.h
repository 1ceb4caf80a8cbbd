// How operands fill the slots that the table of ops gives an op.
#pragma once

#include <algorithm>
#include <span>

#include "compiler/builder/draft/operands.h"
#include "ir/ops/ops.h"

namespace mscclc {

/// Operands per slot of one side.
struct SlotCounts {
  uint32_t n[3] = {0, 0, 0};
};

/// Gives destinations, and sources, to the op's slots in order; false where that does not work out.
bool match_dsts(const OpInfo& info, std::span<const Ref> dsts, SlotCounts& counts);
bool match_srcs(const OpInfo& info, std::span<const Ref> dsts, std::span<const Ref> srcs,
                SlotCounts& counts);
/// Slots of the sources, given the destinations: a port sends packets as they are.
Slots effective_srcs(const OpInfo& info, std::span<const Ref> dsts);
/// True if the operands fit the slots in order.
bool match_slots(const Slots& slots, std::span<const Ref> refs);

/// What one walk over an op's operands shows.
struct OperandFacts {
  uint32_t traits = 0;
  uint32_t least = 0xffffffffu, most = 0;  ///< chunks of an operand
  void add(std::span<const Ref> refs) {
    for (const Ref& ref : refs) {
      traits |= ref.traits;
      least = std::min(least, ref.operand.count);
      most = std::max(most, ref.operand.count);
    }
  }
  bool any(uint32_t trait) const { return (traits & trait) != 0; }
  /// ChannelKinds of the operands.
  uint32_t channel_kinds() const { return (traits & kChannelTraits) >> 16; }
};

}  // namespace mscclc
