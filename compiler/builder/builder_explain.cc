// What to say when operands do not fit an op: found from the table's slots, with the op that would
// fit as the remedy.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/builder/builder_state.h"
#include "ir/report/summations.h"

namespace mscclc {
namespace {

bool is_chunk(SlotKind kind) { return kind <= SlotKind::switched; }

std::string_view kind_word(SlotKind kind) {
  switch (kind) {
    case SlotKind::channel:
      return "channel";
    case SlotKind::semaphore:
      return "semaphore";
    case SlotKind::block:
      return "thread block";
    default:
      return "buffer";
  }
}

bool has_kind(const Slots& slots, SlotKind kind) {
  return std::ranges::any_of(slots, [&](const Slot& s) { return s.kind == kind; });
}

bool same_packets(const Slot& slot, const Ref& ref) {
  return slot.packets == (ref.packets() != PacketFormat::none);
}

/// How many operands a slot list takes at least and, without '*', at most.
uint32_t least(const Slots& slots) {
  return static_cast<uint32_t>(
      std::ranges::count_if(slots, [](const Slot& s) { return !s.many && !s.pairwise; }));
}
bool any_many(const Slots& slots) {
  return std::ranges::any_of(slots, [](const Slot& s) { return s.many || s.pairwise; });
}

std::string_view channel_text(ChannelKind kind) {
  switch (kind) {
    case ChannelKind::memory:
      return "a memory channel";
    case ChannelKind::port:
      return "a port";
    case ChannelKind::switch_:
      break;
  }
  return "a switch";
}

}  // namespace

std::string BuilderState::ref_text(const Ref& ref) {
  const std::string_view written = origin->text(ref.mark);
  if (!written.empty()) return std::string(written);
  if (ref.kind() == SlotKind::semaphore)
    return program.text(out->semaphores[ref.operand.first].label);
  std::string text;
  if (ref.operand.channel != kNone) text = label(rank, ref.operand.channel);
  if (!is_chunk(ref.kind())) return text;
  return text + (text.empty() ? "" : ".") + std::string(name(buffer_of(ref).name));
}

const Buffer& BuilderState::buffer_of(const Ref& ref) const {
  return program.buffer_of(rank, ref.operand);
}

/// The op whose slots these operands fit, or nothing.
std::optional<OpKind> BuilderState::op_that_fits(std::span<const Ref> dsts,
                                                 std::span<const Ref> srcs) {
  for (const OpInfo& info : op_table()) {
    if (!match_slots(info.dsts, dsts) || !match_slots(effective_srcs(info, dsts), srcs)) continue;
    if (dsts.empty() || (info.srcs.slot[0].pairwise && dsts.size() != srcs.size())) continue;
    const bool channels_fit = std::ranges::all_of(dsts, [&](const Ref& r) {
      return r.operand.channel == kNone || (info.channels & bit(r.channel_kind())) != 0;
    });
    if (channels_fit) return info.kind;
  }
  return std::nullopt;
}

/// An operand of a kind that the side does not take. True if it has reported something.
bool BuilderState::explain_operand(const OpInfo& info, const Slots& slots, bool is_dst,
                                   const Ref& ref, std::string_view remedy) {
  const Slot& wanted = slots.slot[0];
  if (!is_chunk(ref.kind()) || !is_chunk(wanted.kind)) {
    if (has_kind(slots, ref.kind())) return false;
    std::string head(ref_text(ref));
    head.resize(std::min(head.find_first_of("[."), head.size()));
    Diagnostic& d = fail("wrong-kind", ref.mark,
                         fmt::format("'{}' is a {}; expected a {}", head, kind_word(ref.kind()),
                                     kind_word(wanted.kind)));
    if (ref.kind() == SlotKind::channel) {
      note(d, ref.mark,
           fmt::format("a chunk at its far end is written '{}.buffer[index]'", ref_text(ref)));
    }
    return true;
  }
  if (!has_kind(slots, ref.kind())) {
    if (ref.kind() == SlotKind::local) {
      const bool at_switch = has_kind(slots, SlotKind::switched);
      fail("needs-channel", ref.mark,
           fmt::format("'{}' {} {}, as in '{}'", info.name, is_dst ? "writes" : "reads",
                       at_switch ? "at a switch" : "through a channel",
                       at_switch ? "sw.stage[c]" : "ch[p].inbox"));
    } else {
      const std::string_view where = has_kind(slots, SlotKind::remote) ? "at a channel's far end"
                                     : has_kind(slots, SlotKind::switched) ? "at a switch"
                                                                           : "of this rank";
      fail("needs-local", ref.mark,
           fmt::format("'{}' {} chunks {}{}", info.name, is_dst ? "writes" : "reads", where,
                       remedy));
    }
    return true;
  }
  const bool fits_one = std::ranges::any_of(
      slots, [&](const Slot& s) { return s.kind == ref.kind() && same_packets(s, ref); });
  if (fits_one) return false;
  const bool packets = ref.packets() != PacketFormat::none;
  Diagnostic& d = fail("packets", ref.mark,
                       fmt::format("'{}' holds {}packets{}", name(buffer_of(ref).name),
                                   packets ? "" : "no ", remedy));
  if (ref.operand.buffer >= kFirstScratch) {
    d.notes.push_back(
        {fmt::format("'{}' is declared here", name(buffer_of(ref).name)), buffer_of(ref).declared});
  }
  return true;
}

/// Operands of good kinds, but too many, too few or in another order.
void BuilderState::explain_count(const OpInfo& info, const Slots& slots, bool is_dst,
                                 std::span<const Ref> refs, std::string_view remedy) {
  const std::string_view word = is_dst ? (info.moves_data() ? "destination" : "operand") : "source";
  const auto given = static_cast<int64_t>(refs.size());
  const Mark mark = refs.empty() ? Mark{} : refs.back().mark;
  if (slots.count == 0) {
    fail("operands", mark,
         is_dst ? fmt::format("'{}' takes no operands", info.name)
                : fmt::format("'{}' takes nothing after '<-'", info.name));
    return;
  }
  const uint32_t min = least(slots);
  if (slots.slot[0].floating) {
    const auto plain =
        std::ranges::count_if(refs, [](const Ref& r) { return r.packets() == PacketFormat::none; });
    Diagnostic& d = fail("operands", mark,
                         fmt::format("'{}' adds one plain source to packets; {} given{}", info.name,
                                     plain == 1 ? "1 is" : fmt::format("{} are", plain), remedy));
    if (plain == 0 && !refs.empty()) {
      note(d, mark,
           fmt::format("unpack one of them first: 'unpack_packets output <- {0}', then "
                       "'{1} output <- output, ...' with the others",
                       ref_text(refs.front()), info.name));
    }
  } else if (given < std::max(min, 1u)) {
    fail("operands", mark, fmt::format("'{}' needs a {}", info.name, word));
  } else if (given < slots.count) {
    fail("operands", mark, fmt::format("'{}' needs {}", info.name, counted(slots.count, word)));
  } else if (!any_many(slots) && given > min) {
    fail("operands", refs[min].mark,
         fmt::format("'{}' has {}; {} are given", info.name, counted(min, word), given));
  } else {
    std::string order;
    for (const Slot& s : slots) {
      if (!order.empty()) order += ", then ";
      order += s.kind == SlotKind::local
                   ? (s.packets ? "packets of this rank" : "a chunk of this rank")
                   : "chunks at far ends";
    }
    fail("operands", mark, fmt::format("'{}' takes {}", info.name, order));
  }
}

bool BuilderState::explain(const OpInfo& info, std::span<const Ref> dsts,
                           std::span<const Ref> srcs) {
  std::string remedy;
  if (const auto other = op_that_fits(dsts, srcs); other && *other != info.kind) {
    remedy = fmt::format("; use '{}'", mscclc::info(*other).name);
  }
  const Slots src_slots = effective_srcs(info, dsts);
  for (const Ref& ref : dsts) {
    if (info.dsts.count > 0 && explain_operand(info, info.dsts, true, ref, remedy)) return false;
  }
  for (const Ref& ref : srcs) {
    if (src_slots.count > 0 && explain_operand(info, src_slots, false, ref, remedy)) return false;
  }
  if (!match_slots(info.dsts, dsts) || (dsts.empty() && info.dsts.count > 0)) {
    explain_count(info, info.dsts, true, dsts, remedy);
  } else if (!match_slots(src_slots, srcs) || !src_slots.slot[0].pairwise) {
    explain_count(info, src_slots, false, srcs, remedy);
  } else {
    fail("operands", srcs.empty() ? dsts.front().mark : srcs.front().mark,
         fmt::format("{}, {}", counted(static_cast<int64_t>(dsts.size()), "destination"),
                     counted(static_cast<int64_t>(srcs.size()), "source")));
  }
  return false;
}

// ---- smaller checks --------------------------------------------------------------------------

bool BuilderState::check_summation(const OpInfo& info, const OpOptions& options, size_t sources) {
  const std::string fault = summation_fault(info, options.summation, options.reduce, sources);
  if (!fault.empty()) fail("option", options.summation_mark, fault);
  return fault.empty();
}

bool BuilderState::check_options(const OpInfo& info, const OpOptions& options, size_t sources) {
  const auto misfit = [&](std::string_view option, Mark mark) {
    fail("option", mark, fmt::format("'{}' cannot be combined with '{}'", option, info.name));
    return false;
  };
  if (options.reduce != ReduceOp::call && !info.has(kReduces))
    return misfit("op", options.reduce_mark);
  if (options.relaxed && info.relaxed.empty()) return misfit("relaxed", options.relaxed_mark);
  if (options.complete && !info.has(kReduces)) return misfit("complete", options.complete_mark);
  if (options.summation != Summation::in_turn && !info.has(kReduces)) {
    return misfit(mscclc::name(options.summation), options.summation_mark);
  }
  if (!check_summation(info, options, sources)) return false;
  if (options.parts == 0) return true;
  if (!info.moves_data()) return misfit("part", options.part_mark);
  if (options.part < options.parts && options.parts <= 0xffff) return true;
  fail("option", options.part_mark,
       fmt::format("part {} of {}: expected one of 0 to {}", options.part, options.parts,
                   std::min(options.parts, 0xffffu) - 1));
  return false;
}

/// Channels must be of a kind that the op takes, all of one kind, and have a partner if counted.
bool BuilderState::check_channels(const OpInfo& info, std::span<const Ref> dsts,
                                  std::span<const Ref> srcs, const OperandFacts& facts) {
  const uint32_t kinds = facts.channel_kinds();
  if ((kinds & (kinds - 1)) == 0 && (kinds & ~info.channels) == 0) {
    return true;
  }
  for (const std::span<const Ref> side : {dsts, srcs}) {
    for (const Ref& ref : side) {
      if (ref.operand.channel == kNone || (bit(ref.channel_kind()) & info.channels) != 0) continue;
      std::string wanted;
      for (const ChannelKind k : {ChannelKind::memory, ChannelKind::port, ChannelKind::switch_}) {
        if ((info.channels & bit(k)) == 0) continue;
        wanted += fmt::format("{}{}", wanted.empty() ? "" : " or ", mscclc::name(k));
      }
      Diagnostic& d =
          fail("channel-kind", ref.mark,
               fmt::format("'{}' needs a {} channel, '{}' is {}", info.name, wanted,
                           label(rank, ref.operand.channel), channel_text(ref.channel_kind())));
      note(d, here->ends[ref.operand.channel].mark,
           fmt::format("'{}' is declared here",
                       name(out->channels[ref.operand.channel].label.name)));
      return false;
    }
  }
  fail("channel-kind", dsts.empty() ? Mark{} : dsts.back().mark,
       fmt::format("'{}' goes through channels of two kinds; write an op for each", info.name));
  return false;
}

/// Reports why a counted channel has no partner. Always false.
bool BuilderState::no_partner(const OpInfo& info, const Ref& ref) {
  const Channel& c = out->channels[ref.operand.channel];
  const ChannelEnd& end = here->ends[ref.operand.channel];
  failed = true;
  if (end.to != kNone || end.broken) return false;  // reported
  const std::string what(name(c.label.name));
  if (end.ambiguous) {
    Diagnostic& d = fail("channel-ambiguous", end.mark,
                         fmt::format("two channels '{}' between ranks {} and {}; say which with "
                                     "'to'",
                                     what, std::min(rank, c.peer), std::max(rank, c.peer)));
    note(d, ref.mark, fmt::format("'{}' counts on one of them", info.name));
    return false;
  }
  Diagnostic& d = fail(
      "no-partner", ref.mark,
      info.has(kWaits) ? "nothing can signal for this wait" : "nothing can wait for this signal");
  note(d, end.mark,
       fmt::format("rank {} has no channel '{}' to rank {}, and this one says nothing else with "
                   "'to'",
                   c.peer, what, rank));
  return false;
}

bool BuilderState::wrong_count(const Ref& a, const Ref& b) {
  fail("chunk-count", b.mark,
       fmt::format("{} <- {}", counted(a.operand.count, "chunk"),
                   counted(b.operand.count, "chunk")));
  return false;
}

bool BuilderState::wrong_loop_count(std::span<const Ref> dsts, std::span<const Ref> srcs) {
  for (const std::span<const Ref> side : {dsts, srcs}) {
    for (const Ref& ref : side) {
      if (ref.operand.count == loop_chunks) continue;
      fail("pipeline-chunks", ref.mark,
           fmt::format("{} in a pipeline over {}", counted(ref.operand.count, "chunk"),
                       loop_chunks));
      return false;
    }
  }
  return false;
}

/// The rank whose declaration counts: at a switch all are alike.
uint32_t BuilderState::owner_of_buffer(const Operand& o) const {
  const bool here_too = o.channel == kNone || out->channels[o.channel].peer == kNone;
  return here_too ? rank : out->channels[o.channel].peer;
}

/// A buffer of units is for pipelines of one unit, over one chunk; the first that uses it says
/// which.
bool BuilderState::check_units(std::span<const Ref> refs) {
  for (const Ref& ref : refs) {
    if ((ref.traits & kUnitsTrait) == 0) continue;
    const uint32_t owner = owner_of_buffer(ref.operand);
    if (loop == kNone || loop_chunks != 1) {
      const NameId buffer = program.ranks[owner].buffers[ref.operand.buffer].name;
      Diagnostic& d = fail(
          "units", ref.mark,
          fmt::format("'{}' holds units, which only a pipeline over one chunk has", name(buffer)));
      note_buffer(d, owner, ref.operand.buffer);
      return false;
    }
    if (!take_unit(owner, ref.operand.buffer, ref.mark)) return false;
    if (ref.operand.channel == kNone) continue;
    const Channel& channel = out->channels[ref.operand.channel];
    if (channel.kind == ChannelKind::switch_ && !take_unit_at_switch(channel, ref)) return false;
  }
  return true;
}

/// What lies at a switch is the same on all its ranks, whichever of them uses it.
bool BuilderState::take_unit_at_switch(const Channel& channel, const Ref& ref) {
  const NameId buffer = out->buffers[ref.operand.buffer].name;
  return std::ranges::all_of(program.values(channel.group), [&](int64_t q) {
    const auto member = static_cast<uint32_t>(q);
    return take_unit(member, decl(member, buffer).index, ref.mark);
  });
}

/// A buffer of units is used in the pipeline at hand.
bool BuilderState::take_unit(uint32_t owner, uint32_t index, Mark mark) {
  Buffer& buffer = program.ranks[owner].buffers[index];
  const uint64_t unit = program.loops[loop].unit;
  if (buffer.unit == 0) buffer.unit = unit;
  if (buffer.unit == unit) return true;
  fail("units", mark,
       fmt::format("'{}' holds units of {} bytes, those of this pipeline have {}",
                   name(buffer.name), buffer.unit, unit));
  return false;
}

std::string BuilderState::owner_text(uint32_t owner) const {
  if ((owner & kGroupOwner) == 0) return fmt::format("tb {}", owner);
  const Slice blocks = program.groups[owner & ~kGroupOwner];
  return fmt::format("group {}", list_text(List::stored(program.values(blocks))));
}

}  // namespace mscclc
