#include "compiler/builder/ops/chunk_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <vector>

#include "compiler/builder/draft/texts.h"
#include "ir/report/coinciding.h"
#include "ir/support/precondition.h"

namespace mscclc {
namespace {

/// Is it worth looking for operands that mean the same memory? Most ops cannot have them.
bool may_coincide(const OpInfo& info, std::span<const Ref> dsts, const OperandFacts& facts) {
  const uint32_t formats = (facts.traits & kFormatTraits) >> 8;  // one, or none
  const bool sentinels =
      formats != 0 && is_sentinel(static_cast<PacketFormat>(std::countr_zero(formats)));
  const bool stores_each = info.srcs.slot[0].pairwise || info.has(kApplies);
  return (sentinels && info.has(kPolls)) || (stores_each && dsts.size() > 1);
}

}  // namespace

bool ChunkChecks::check(const OpInfo& info, std::span<const Ref> dsts, std::span<const Ref> srcs,
                        const OperandFacts& facts, const OpOptions& options) {
  if (!check_together(info, dsts, srcs, facts)) return false;
  return !may_coincide(info, dsts, facts) || check_coinciding(info, dsts, srcs, options);
}

/// All chunks that an op moves together must be as many, and as long for every message.
bool ChunkChecks::check_together(const OpInfo& info, std::span<const Ref> dsts,
                                 std::span<const Ref> srcs, const OperandFacts& facts) {
  const uint32_t formats = facts.traits & kFormatTraits;
  // Packets that one op touches are of one format: forwarded packets keep theirs.
  if ((formats & (formats - 1)) != 0) return mixed_formats(dsts, srcs);
  if (places_.loop() != kNone) {
    if (formats != 0) {
      reports_.fail("nesting", {}, "packets inside a pipeline");
      return false;
    }
    if (facts.least != places_.loop_chunks() || facts.most != places_.loop_chunks()) {
      return wrong_loop_count(dsts, srcs);
    }
  }
  if (facts.any(kUnitsTrait) && !(check_units(dsts) && check_units(srcs))) return false;
  const bool caller = facts.any(kCallerTrait);
  if (!caller && facts.least == facts.most) return true;
  if (!check_sizes(info.srcs.slot[0].pairwise, dsts, srcs)) return false;
  const bool writable = draft_.program.contract.in_place == InPlace::yes || draft_.program.foreign;
  return writable || !caller || check_input(dsts);
}

bool ChunkChecks::check_input(std::span<const Ref> dsts) {
  for (const Ref& ref : dsts) {
    if (ref.operand.buffer != kInput) continue;
    reports_.fail("input-written", ref.mark, "'input' may be written only with 'inplace: true'");
    return false;
  }
  return true;
}

bool ChunkChecks::check_sizes(bool pairwise, std::span<const Ref> dsts, std::span<const Ref> srcs) {
  if (pairwise) {
    for (size_t i = 0; i < dsts.size(); ++i) {
      if (dsts[i].operand.count != srcs[i].operand.count) return wrong_count(dsts[i], srcs[i]);
      const bool both = (dsts[i].traits & srcs[i].traits & kCallerTrait) != 0;
      if (both && !same_size(dsts[i], srcs[i])) return false;
    }
    return true;
  }
  const Ref* caller = nullptr;  // the first chunk of input or output
  for (const std::span<const Ref> side : {dsts, srcs}) {
    for (const Ref& ref : side) {
      if (ref.operand.count != dsts[0].operand.count) return wrong_count(dsts[0], ref);
      if ((ref.traits & kCallerTrait) == 0) continue;
      if (caller != nullptr && !same_size(*caller, ref)) return false;
      caller = caller != nullptr ? caller : &ref;
    }
  }
  return true;
}

/// Chunks of input and output must be at the same position of a row, or sizes differ by a granule.
/// REQUIRES: both are such chunks.
bool ChunkChecks::same_size(const Ref& a, const Ref& b) {
  precondition((a.traits & b.traits & kCallerTrait) != 0);
  if (draft_.program.contract.even_only) return true;
  const auto owner = [&](const Ref& ref) {
    return ref.kind() == SlotKind::remote ? draft_.out->channels[ref.operand.channel].peer
                                          : draft_.rank;
  };
  const uint32_t owner_a = owner(a), owner_b = owner(b);
  // Only rows of different lengths need a look at each chunk.
  const bool ragged = layouts_.of(owner_a, a.operand.buffer).row_count > 0;
  const uint32_t n = ragged ? a.operand.count : std::min(a.operand.count, 1u);
  for (uint32_t i = 0; i < n; ++i) {
    if (layouts_.size_class(owner_a, a.operand.buffer, a.operand.first + i) ==
        layouts_.size_class(owner_b, b.operand.buffer, b.operand.first + i)) {
      continue;
    }
    const auto text = [&](const Ref& ref) {
      return fmt::format("{}[{}]", ref.operand.buffer == kInput ? "input" : "output",
                         ref.operand.first + i);
    };
    const bool input_first = a.operand.buffer != kInput && b.operand.buffer == kInput;
    Diagnostic& d =
        reports_.fail("size-class", b.mark,
                      fmt::format("{} and {} differ in size when the message does not divide",
                                  text(input_first ? b : a), text(input_first ? a : b)));
    header_.note_even(d);
    return false;
  }
  return true;
}

/// Reports packets of two formats. Always false.
bool ChunkChecks::mixed_formats(std::span<const Ref> dsts, std::span<const Ref> srcs) {
  const Ref* first = nullptr;
  bool from_dst = false;
  for (const std::span<const Ref> side : {dsts, srcs}) {
    for (const Ref& ref : side) {
      if (ref.packets() == PacketFormat::none) continue;
      if (first == nullptr) {
        first = &ref;
        from_dst = side.data() == dsts.data();
      }
      if (ref.packets() == first->packets()) continue;
      reports_.fail("packet-formats", ref.mark,
                    fmt::format("{} packets {} {} packets", mscclc::name(first->packets()),
                                from_dst ? "<-" : "beside", mscclc::name(ref.packets())));
      return false;
    }
  }
  return false;
}

bool ChunkChecks::wrong_count(const Ref& a, const Ref& b) {
  reports_.fail("chunk-count", b.mark,
                fmt::format("{} <- {}", counted(a.operand.count, "chunk"),
                            counted(b.operand.count, "chunk")));
  return false;
}

bool ChunkChecks::wrong_loop_count(std::span<const Ref> dsts, std::span<const Ref> srcs) {
  for (const std::span<const Ref> side : {dsts, srcs}) {
    for (const Ref& ref : side) {
      if (ref.operand.count == places_.loop_chunks()) continue;
      reports_.fail("pipeline-chunks", ref.mark,
                    fmt::format("{} in a pipeline over {}", counted(ref.operand.count, "chunk"),
                                places_.loop_chunks()));
      return false;
    }
  }
  return false;
}

// ---- operands that coincide --------------------------------------------------------------------

/// Operands that mean the same memory, with no order between them (ir/report/coinciding.h).
bool ChunkChecks::check_coinciding(const OpInfo& info, std::span<const Ref> dsts,
                                   std::span<const Ref> srcs, const OpOptions& options) {
  const auto operands = [](std::span<const Ref> refs) {
    std::vector<Operand> out;
    for (const Ref& ref : refs) out.push_back(ref.operand);
    return out;
  };
  const std::vector<Operand> to = operands(dsts), from = operands(srcs);
  uint64_t pieces = std::max<uint64_t>(options.parts, 1);
  if (places_.group() != kNone) pieces *= draft_.program.groups[places_.group()].count;
  const auto found = find_coinciding(draft_.program, draft_.rank, info.kind, pieces, to, from);
  if (!found) return true;
  const auto mark_in = [&](const std::vector<Operand>& side, std::span<const Ref> refs) {
    const bool here = found->at >= side.data() && found->at < side.data() + side.size();
    return here ? refs[static_cast<size_t>(found->at - side.data())].mark : Mark{};
  };
  const Mark mark = found->code == "op-slot-twice" ? mark_in(from, srcs) : mark_in(to, dsts);
  Diagnostic& d = reports_.fail(found->code, mark, found->message);
  d.notes.push_back({found->remedy});
  return false;
}

// ---- buffers of units ------------------------------------------------------------------------

/// The rank whose declaration counts: at a switch all are alike.
uint32_t ChunkChecks::owner_of_buffer(const Operand& o) const {
  const bool here_too = o.channel == kNone || draft_.out->channels[o.channel].peer == kNone;
  return here_too ? draft_.rank : draft_.out->channels[o.channel].peer;
}

/// A buffer of units is for pipelines of one unit, over one chunk; the first that uses it says
/// which.
bool ChunkChecks::check_units(std::span<const Ref> refs) {
  for (const Ref& ref : refs) {
    if ((ref.traits & kUnitsTrait) == 0) continue;
    const uint32_t owner = owner_of_buffer(ref.operand);
    if (places_.loop() == kNone || places_.loop_chunks() != 1) {
      const NameId buffer = draft_.program.ranks[owner].buffers[ref.operand.buffer].name;
      Diagnostic& d =
          reports_.fail("units", ref.mark,
                        fmt::format("'{}' holds units, which only a pipeline over one chunk has",
                                    draft_.name(buffer)));
      layouts_.note_buffer(d, owner, ref.operand.buffer);
      return false;
    }
    if (!take_unit(owner, ref.operand.buffer, ref.mark)) return false;
    if (ref.operand.channel == kNone) continue;
    const Channel& channel = draft_.out->channels[ref.operand.channel];
    if (channel.kind == ChannelKind::switch_ && !take_unit_at_switch(channel, ref)) return false;
  }
  return true;
}

/// What lies at a switch is the same on all its ranks, whichever of them uses it.
bool ChunkChecks::take_unit_at_switch(const Channel& channel, const Ref& ref) {
  const NameId buffer = draft_.out->buffers[ref.operand.buffer].name;
  return std::ranges::all_of(draft_.program.values(channel.group), [&](int64_t q) {
    const auto member = static_cast<uint32_t>(q);
    return take_unit(member, names_.decl(member, buffer).index, ref.mark);
  });
}

/// A buffer of units is used in the pipeline at hand.
bool ChunkChecks::take_unit(uint32_t owner, uint32_t index, Mark mark) {
  Buffer& buffer = draft_.program.ranks[owner].buffers[index];
  const uint64_t unit = draft_.program.loops[places_.loop()].unit;
  if (buffer.unit == 0) buffer.unit = unit;
  if (buffer.unit == unit) return true;
  reports_.fail("units", mark,
                fmt::format("'{}' holds units of {} bytes, those of this pipeline have {}",
                            draft_.name(buffer.name), buffer.unit, unit));
  return false;
}

}  // namespace mscclc
