// Ops: every check comes from the slots of the op table (ir/ops/ops.h), none from the op's name.
// What has nothing to do is left out, what has one source to add up becomes the ops it is made of.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "compiler/builder/builder_state.h"

namespace mscclc {
namespace {

bool fits(const Slot& slot, const Ref& ref) {
  const uint32_t wanted =
      1u << static_cast<int>(slot.kind) | (slot.packets ? uint32_t{kPacketTrait} : 0);
  return (ref.traits & (kKindTraits | kPacketTrait)) == wanted;
}

/// Gives operands to slots in order. Returns false where that does not work out. `packets`: chunks
/// must be in packets whatever the slots say.
bool match(const Slots& slots, std::span<const Ref> refs, SlotCounts& counts,
           bool packets = false) {
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

bool match_srcs(const OpInfo& info, std::span<const Ref> dsts, std::span<const Ref> srcs,
                SlotCounts& counts) {
  return match(info.srcs, srcs, counts, port_packets(info, dsts));
}

/// Is it worth looking for operands that mean the same memory? Most ops cannot have them.
bool may_coincide(const OpInfo& info, std::span<const Ref> dsts, const OperandFacts& facts) {
  const uint32_t formats = (facts.traits & kFormatTraits) >> 8;  // one, or none
  const bool sentinels =
      formats != 0 && is_sentinel(static_cast<PacketFormat>(std::countr_zero(formats)));
  return (sentinels && info.has(kPolls)) || (info.srcs.slot[0].pairwise && dsts.size() > 1);
}

/// The name of the first or last op that `info` is made of.
OpKind part_of(const OpInfo& info, bool last) {
  const std::string_view parts = info.made_of;
  const size_t space = last ? parts.rfind(' ') : parts.find(' ');
  return *find_op(last ? parts.substr(space + 1) : parts.substr(0, space));
}

}  // namespace

// ---- checks of chunks ------------------------------------------------------------------------

/// All chunks that an op moves together must be as many, and as long for every message.
inline bool BuilderState::check_chunks(const OpInfo& info, std::span<const Ref> dsts,
                                       std::span<const Ref> srcs, const OperandFacts& facts) {
  const uint32_t formats = facts.traits & kFormatTraits;
  // Packets that one op touches are of one format: forwarded packets keep theirs.
  if ((formats & (formats - 1)) != 0) return mixed_formats(dsts, srcs);
  if (loop != kNone) {
    if (formats != 0) {
      fail("nesting", {}, "packets inside a pipeline");
      return false;
    }
    if (facts.least != loop_chunks || facts.most != loop_chunks) {
      return wrong_loop_count(dsts, srcs);
    }
  }
  if (facts.any(kUnitsTrait) && !(check_units(dsts) && check_units(srcs))) return false;
  const bool caller = facts.any(kCallerTrait);
  if (!caller && facts.least == facts.most) return true;
  if (!check_sizes(info.srcs.slot[0].pairwise, dsts, srcs)) return false;
  return input_writable || !caller || check_input(dsts);
}

// ---- appending -------------------------------------------------------------------------------

namespace {

inline void add(Tally& tally, uint32_t rounds, BuilderState& s, uint64_t key) {
  if (tally.count == 0) tally.rounds = rounds;
  if (tally.rounds == rounds) {
    ++tally.count;
  } else {
    ++s.more_tallies[{key, rounds}];
  }
}

}  // namespace

/// Notes what uses a side of a channel's end, and counts signals and waits.
void BuilderState::use_channels(const OpInfo& info, std::span<const Ref> refs) {
  const uint32_t owner = block != kNone ? block : group != kNone ? kGroupOwner | group : kNone;
  for (const Ref& ref : refs) {
    const uint32_t c = ref.operand.channel;
    ChannelEnd& end = here->ends[c];
    const uint64_t key = tally_key(rank, c);
    const bool waits = info.has(kWaits);
    uint32_t& side = waits ? end.waiter : end.sender;
    if (side != owner) claim(side, owner, waits ? "wait" : "signal", ref);
    if (waits) {
      add(end.waits, rounds, *this, key | kWaitTally);
    } else if (info.has(kSignals)) {
      add(end.signals, rounds, *this, key);
    }
  }
}

void BuilderState::use_semaphores(const OpInfo& info, std::span<const Ref> refs) {
  for (const Ref& ref : refs) {
    SemaphoreCount& count = here->semaphores[ref.operand.first];
    const uint64_t key = tally_key(rank, ref.operand.first) | kSemaphoreTally;
    if (info.has(kReleases)) {
      add(count.releases, rounds, *this, key);
    } else {
      add(count.acquires, rounds, *this, key | kWaitTally);
    }
  }
}

void BuilderState::claim(uint32_t& side, uint32_t owner, std::string_view verb, const Ref& ref) {
  if (owner == kNone) return;
  if (side == kNone || program.foreign) {
    side = owner;
    return;
  }
  Diagnostic& d = fail("channel-shared", ref.mark,
                       fmt::format("{} and {} both {} at '{}'", owner_text(side), owner_text(owner),
                                   verb, label(rank, ref.operand.channel)));
  note(d, here->ends[ref.operand.channel].mark,
       fmt::format("each side of a channel serves one block or group; '{}' is declared here",
                   name(out->channels[ref.operand.channel].label.name)));
}

bool BuilderState::too_many_ops() {
  if (!gave_up) fail("too-many-ops", {}, fmt::format("more than {} ops", max_ops));
  gave_up = true;
  return false;
}

/// What the channels and semaphores of an op are used for.
inline void BuilderState::use(const OpInfo& info, std::span<const Ref> dsts) {
  if (info.effects & (kSignals | kWaits | kFlushes)) {
    use_channels(info, dsts);
  } else if (info.effects & (kReleases | kAcquires)) {
    use_semaphores(info, dsts);
  } else if (!dsts.empty() && (dsts[0].traits & uint32_t{kPort} << 16) != 0) {
    use_channels(info, dsts);
  }
}

inline void BuilderState::append(OpKind kind, std::span<const Ref> dsts, std::span<const Ref> srcs,
                                 const OpOptions& options) {
  const size_t n = dsts.size() + srcs.size();
  if (!room_for(n)) return;
  if ((dsts.size() | srcs.size()) > kMaxOperands) {  // which has all its bits set
    fail("too-many-operands", {}, fmt::format("more than {} operands", kMaxOperands));
    return;
  }
  use(table[static_cast<size_t>(kind)], dsts);
  Op& op = out->ops.emplace_back();
  op.kind = kind;
  op.reduce = options.reduce;
  op.relaxed = options.relaxed;
  op.summation = options.summation;
  op.complete = options.complete;
  op.part = static_cast<uint16_t>(options.part);
  op.parts = static_cast<uint16_t>(options.parts);
  op.dsts = static_cast<uint16_t>(dsts.size());
  op.srcs = static_cast<uint16_t>(srcs.size());
  op.block = block;
  op.group = group;
  op.loop = loop;
  op.locations = present_locations();
  Operand* to = program.operands.add(n, op.operands);
  for (const Ref& ref : dsts) *to++ = ref.operand;
  for (const Ref& ref : srcs) *to++ = ref.operand;
}

// ---- ops -------------------------------------------------------------------------------------

bool match_slots(const Slots& slots, std::span<const Ref> refs) {
  SlotCounts counts;
  return match(slots, refs, counts);
}

Slots effective_srcs(const OpInfo& info, std::span<const Ref> dsts) {
  Slots srcs = info.srcs;
  if (port_packets(info, dsts)) srcs.slot[0].packets = true;
  return srcs;
}

bool Builder::op(OpKind kind, std::initializer_list<Ref> dsts, std::initializer_list<Ref> srcs,
                 const OpOptions& options) {
  return op(kind, std::span<const Ref>(dsts.begin(), dsts.size()),
            std::span<const Ref>(srcs.begin(), srcs.size()), options);
}

/// True if an op of this kind with such operands was found right before. Most ops are as the one
/// before them, except for the numbers.
inline bool Accepted::same(std::span<const Ref> d, std::span<const Ref> s) const {
  if (d.size() != dsts || s.size() != srcs) return false;
  const uint32_t* known = traits;
  for (const Ref& ref : d) {
    if (ref.traits != *known++) return false;
  }
  for (const Ref& ref : s) {
    if (ref.traits != *known++) return false;
  }
  return true;
}

void Accepted::set(std::span<const Ref> d, std::span<const Ref> s) {
  if (d.size() + s.size() > kMost) return;
  dsts = static_cast<uint32_t>(d.size());
  srcs = static_cast<uint32_t>(s.size());
  uint32_t* at = traits;
  for (const Ref& ref : d) *at++ = ref.traits;
  for (const Ref& ref : s) *at++ = ref.traits;
}

/// Checks what depends on kinds and numbers of operands alone. Anything but `whole` is handled.
Fit BuilderState::fit(const OpInfo& info, std::span<const Ref> dsts, std::span<const Ref> srcs,
                      const OperandFacts& facts, const OpOptions& options) {
  SlotCounts dst_counts, src_counts;
  if (!match(info.dsts, dsts, dst_counts) || !match_srcs(info, dsts, srcs, src_counts)) {
    explain(info, dsts, srcs);
    return Fit::wrong;
  }
  if (options.any() && !check_options(info, options, srcs.size())) return Fit::wrong;
  if (facts.any(kChannelTraits) && !check_channels(info, dsts, srcs, facts)) return Fit::wrong;
  if (info.dsts.count == 0 && !placed()) {
    fail("nesting", {}, fmt::format("'{}' outside 'tb' and 'group'", info.name));
    return Fit::wrong;
  }
  // An op without destination, channel or semaphore is left out; IR text has none.
  if (info.dsts.count == 1 && info.dsts.slot[0].many && dsts.empty()) {
    if (!flat) return Fit::nothing;
    explain(info, dsts, srcs);
    return Fit::wrong;
  }
  if (info.srcs.count == 1 && info.srcs.slot[0].pairwise && dsts.size() != srcs.size()) {
    explain(info, dsts, srcs);
    return Fit::wrong;
  }
  if (!info.has(kReduces) || info.srcs.count < 2) return Fit::whole;
  const uint32_t last = info.dsts.count - 1;
  const bool no_far = info.dsts.slot[last].many && dst_counts.n[last] == 0;
  if (!no_far && src_counts.n[1] > 0) return Fit::whole;
  if (flat) {
    explain(info, dsts, srcs);
    return Fit::wrong;
  }
  if (src_counts.n[1] > 0) return Fit::no_far;
  return no_far ? Fit::one_source_no_far : Fit::one_source;
}

bool Builder::op(OpKind kind, std::span<const Ref> dsts, std::span<const Ref> srcs,
                 const OpOptions& options) {
  BuilderState& s = *state_;
  if (!s.sealed) seal();
  if (s.gave_up || !s.ready()) return false;
  const OpInfo& info = s.table[static_cast<size_t>(kind)];
  OperandFacts facts;
  facts.add(dsts);
  facts.add(srcs);
  if (facts.any(kInvalidTrait)) return false;
  Accepted& accepted = s.accepted[static_cast<size_t>(kind)];
  Fit fit = Fit::whole;
  if (options.any() || !accepted.same(dsts, srcs)) {
    fit = s.fit(info, dsts, srcs, facts, options);
    if (fit == Fit::wrong) return false;
    if (fit == Fit::whole && !options.any() && !dsts.empty()) accepted.set(dsts, srcs);
  }
  // A block whose ops turn out to have nothing to do is not a mistake.
  if (s.block != kNone) s.block_uses[s.block].has_ops = true;
  if (fit == Fit::nothing) return true;
  if (info.moves_data()) {
    if (!s.check_chunks(info, dsts, srcs, facts)) return false;
    if (may_coincide(info, dsts, facts) && !s.check_coinciding(info, dsts, srcs, options)) {
      return false;
    }
    if (facts.least == 0) return s.without_empty(kind, dsts, srcs, options);
    if (fit != Fit::whole) return s.reduce_less(info, dsts, srcs, options, fit);
    if (kind == OpKind::copy && !s.flat && dsts[0].operand == srcs[0].operand) return true;
  }
  if ((info.effects & (kSignals | kWaits)) != 0 && !s.check_partners(info, dsts)) return false;
  s.append(kind, dsts, srcs, options);
  return !s.gave_up;
}

/// A reduction with empty operand lists: without far destinations it is the op without them, with
/// one source a copy.
bool BuilderState::reduce_less(const OpInfo& info, std::span<const Ref> dsts,
                               std::span<const Ref> srcs, OpOptions options, Fit fit) {
  const OpKind kind = fit == Fit::one_source ? info.kind : part_of(info, false);
  if (fit == Fit::no_far) {
    append(kind, dsts, srcs, options);
  } else {
    options.reduce = ReduceOp::call;
    options.summation = Summation::in_turn;
    options.complete = false;
    spread(mscclc::info(kind), dsts, srcs[0], options);
  }
  return !gave_up;
}

/// A reduction of one source: its destinations get a copy, made by the ops it is a fusion of.
void BuilderState::spread(const OpInfo& info, std::span<const Ref> dsts, const Ref& src,
                          const OpOptions& options) {
  if (info.made_of.empty()) {
    if (dsts[0].operand != src.operand) append(OpKind::copy, dsts, {&src, 1}, options);
    return;
  }
  // The last part serves the operands of the last slot, from the op's first destination.
  const OpInfo& rest = mscclc::info(part_of(info, false));
  spread(rest, dsts.first(rest.dsts.count), src, options);
  const std::span<const Ref> far = dsts.subspan(rest.dsts.count);
  const std::vector<Ref> results(far.size(), dsts[0]);
  append(part_of(info, true), far, results, options);
}

/// Leaves out operands without chunks (rows of alltoallv).
bool BuilderState::without_empty(OpKind kind, std::span<const Ref> dsts, std::span<const Ref> srcs,
                                 const OpOptions& options) {
  if (!info(kind).srcs.slot[0].pairwise) return true;
  std::vector<Ref> some_dsts, some_srcs;
  for (size_t i = 0; i < dsts.size(); ++i) {
    if (dsts[i].operand.count == 0) continue;
    some_dsts.push_back(dsts[i]);
    some_srcs.push_back(srcs[i]);
  }
  if (!some_dsts.empty()) append(kind, some_dsts, some_srcs, options);
  return true;
}

}  // namespace mscclc
