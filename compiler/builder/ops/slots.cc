#include "compiler/builder/ops/slots.h"

namespace mscclc {
namespace {

bool fits(const Slot& slot, const Ref& ref) {
  const uint32_t wanted =
      1u << static_cast<int>(slot.kind) | (slot.packets ? uint32_t{kPacketTrait} : 0);
  return (ref.traits & (kKindTraits | kPacketTrait)) == wanted;
}

/// Gives operands to slots in order. Returns false where that does not work out. `packets`: chunks
/// must be in packets whatever the slots say.
bool match(const Slots& slots, std::span<const Ref> refs, SlotCounts& counts, bool packets) {
  const Ref* at = refs.data();
  const Ref* const end = at + refs.size();
  for (uint32_t k = 0; k < slots.count; ++k) {
    const Slot& slot = slots.slot[k];
    if (slot.floating) {  // one among the operands of the last slot
      const Slot& rest = slots.slot[k + 1];
      for (; at != end; ++at) {
        if (fits(rest, *at)) {
          ++counts.n[k + 1];
        } else if (fits(slot, *at)) {
          ++counts.n[k];
        } else {
          return false;
        }
      }
      return counts.n[k] == 1;
    }
    const Ref* const first = at;
    if (packets) {
      while (at != end && at->kind() == slot.kind && (at->traits & kPacketTrait) != 0) ++at;
    } else if (slot.many || slot.pairwise) {
      while (at != end && fits(slot, *at)) ++at;
    } else if (at != end && fits(slot, *at)) {
      ++at;
    }
    counts.n[k] = static_cast<uint32_t>(at - first);
    if (at == first && !slot.many && !slot.pairwise) return false;
  }
  return at == end;
}

/// A port sends packets as they lie: its sources are packets where its destinations are.
bool port_packets(const OpInfo& info, std::span<const Ref> dsts) {
  constexpr uint32_t kPorts = uint32_t{kPort} << 16;
  return info.dsts.slot[0].packets && info.srcs.slot[0].pairwise && !dsts.empty() &&
         (dsts[0].traits & kPorts) != 0 && dsts[0].kind() == SlotKind::remote;
}

}  // namespace

bool match_dsts(const OpInfo& info, std::span<const Ref> dsts, SlotCounts& counts) {
  return match(info.dsts, dsts, counts, false);
}

bool match_srcs(const OpInfo& info, std::span<const Ref> dsts, std::span<const Ref> srcs,
                SlotCounts& counts) {
  return match(info.srcs, srcs, counts, port_packets(info, dsts));
}

bool match_slots(const Slots& slots, std::span<const Ref> refs) {
  SlotCounts counts;
  return match(slots, refs, counts, false);
}

Slots effective_srcs(const OpInfo& info, std::span<const Ref> dsts) {
  Slots srcs = info.srcs;
  if (port_packets(info, dsts)) srcs.slot[0].packets = true;
  return srcs;
}

}  // namespace mscclc
