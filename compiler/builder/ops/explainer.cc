#include "compiler/builder/ops/explainer.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/builder/draft/texts.h"
#include "compiler/builder/ops/slots.h"
#include "ir/program/flag_regions.h"

namespace mscclc {
namespace {

bool is_chunk(SlotKind kind) { return kind <= SlotKind::switched; }

std::string_view kind_word(SlotKind kind) {
  switch (kind) {
    case SlotKind::channel:
      return "channel";
    case SlotKind::semaphore:
      return "semaphore";
    case SlotKind::flag:
      return "flag";
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

}  // namespace

std::string Explainer::ref_text(const Ref& ref) {
  const std::string_view written = reports_.text(ref.mark);
  if (!written.empty()) return std::string(written);
  if (ref.kind() == SlotKind::semaphore)
    return draft_.program.text(draft_.out->semaphores[ref.operand.first].label);
  if (ref.kind() == SlotKind::flag) {
    return flag_text(draft_.program, ref.operand.buffer, ref.operand.first);
  }
  std::string text;
  if (ref.operand.channel != kNone) text = draft_.label(draft_.rank, ref.operand.channel);
  if (!is_chunk(ref.kind())) return text;
  return text + (text.empty() ? "" : ".") + std::string(draft_.name(buffer_of(ref).name));
}

const Buffer& Explainer::buffer_of(const Ref& ref) const {
  return draft_.program.buffer_of(draft_.rank, ref.operand);
}

/// The op whose slots these operands fit, or nothing.
std::optional<OpKind> Explainer::op_that_fits(std::span<const Ref> dsts,
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
bool Explainer::explain_operand(const OpInfo& info, const Slots& slots, bool is_dst, const Ref& ref,
                                std::string_view remedy) {
  const Slot& wanted = slots.slot[0];
  if (!is_chunk(ref.kind()) || !is_chunk(wanted.kind)) {
    if (has_kind(slots, ref.kind())) return false;
    std::string head(ref_text(ref));
    head.resize(std::min(head.find_first_of("[."), head.size()));
    Diagnostic& d = reports_.fail("wrong-kind", ref.mark,
                                  fmt::format("'{}' is a {}; expected a {}", head,
                                              kind_word(ref.kind()), kind_word(wanted.kind)));
    if (ref.kind() == SlotKind::channel) {
      reports_.note(
          d, ref.mark,
          fmt::format("a chunk at its far end is written '{}.buffer[index]'", ref_text(ref)));
    }
    return true;
  }
  if (!has_kind(slots, ref.kind())) {
    if (ref.kind() == SlotKind::local) {
      const bool at_switch = has_kind(slots, SlotKind::switched);
      reports_.fail("needs-channel", ref.mark,
                    fmt::format("'{}' {} {}, as in '{}'", info.name, is_dst ? "writes" : "reads",
                                at_switch ? "at a switch" : "through a channel",
                                at_switch ? "sw.stage[c]" : "ch[p].inbox"));
    } else {
      const std::string_view where = has_kind(slots, SlotKind::remote) ? "at a channel's far end"
                                     : has_kind(slots, SlotKind::switched) ? "at a switch"
                                                                           : "of this rank";
      reports_.fail("needs-local", ref.mark,
                    fmt::format("'{}' {} chunks {}{}", info.name, is_dst ? "writes" : "reads",
                                where, remedy));
    }
    return true;
  }
  const bool fits_one = std::ranges::any_of(
      slots, [&](const Slot& s) { return s.kind == ref.kind() && same_packets(s, ref); });
  if (fits_one) return false;
  const bool packets = ref.packets() != PacketFormat::none;
  Diagnostic& d =
      reports_.fail("packets", ref.mark,
                    fmt::format("'{}' holds {}packets{}", draft_.name(buffer_of(ref).name),
                                packets ? "" : "no ", remedy));
  if (ref.operand.buffer >= kFirstScratch) {
    d.notes.push_back({fmt::format("'{}' is declared here", draft_.name(buffer_of(ref).name)),
                       buffer_of(ref).declared});
  }
  return true;
}

/// Operands of good kinds, but too many, too few or in another order.
void Explainer::explain_count(const OpInfo& info, const Slots& slots, bool is_dst,
                              std::span<const Ref> refs, std::string_view remedy) {
  const std::string_view word = is_dst ? (info.moves_data() ? "destination" : "operand") : "source";
  const auto given = static_cast<int64_t>(refs.size());
  const Mark mark = refs.empty() ? Mark{} : refs.back().mark;
  if (slots.count == 0) {
    reports_.fail("operands", mark,
                  is_dst ? fmt::format("'{}' takes no operands", info.name)
                         : fmt::format("'{}' takes nothing after '<-'", info.name));
    return;
  }
  const uint32_t min = least(slots);
  if (slots.slot[0].floating) {
    const auto plain =
        std::ranges::count_if(refs, [](const Ref& r) { return r.packets() == PacketFormat::none; });
    Diagnostic& d =
        reports_.fail("operands", mark,
                      fmt::format("'{}' adds one plain source to packets; {} given{}", info.name,
                                  plain == 1 ? "1 is" : fmt::format("{} are", plain), remedy));
    if (plain == 0 && !refs.empty()) {
      reports_.note(d, mark,
                    fmt::format("unpack one of them first: 'unpack_packets output <- {0}', then "
                                "'{1} output <- output, ...' with the others",
                                ref_text(refs.front()), info.name));
    }
  } else if (given < std::max(min, 1u)) {
    reports_.fail("operands", mark, fmt::format("'{}' needs a {}", info.name, word));
  } else if (given < slots.count) {
    reports_.fail("operands", mark,
                  fmt::format("'{}' needs {}", info.name, counted(slots.count, word)));
  } else if (!any_many(slots) && given > min) {
    reports_.fail("operands", refs[min].mark,
                  fmt::format("'{}' has {}; {} are given", info.name, counted(min, word), given));
  } else {
    std::string order;
    for (const Slot& s : slots) {
      if (!order.empty()) order += ", then ";
      order += s.kind == SlotKind::local
                   ? (s.packets ? "packets of this rank" : "a chunk of this rank")
                   : "chunks at far ends";
    }
    reports_.fail("operands", mark, fmt::format("'{}' takes {}", info.name, order));
  }
}

bool Explainer::explain(const OpInfo& info, std::span<const Ref> dsts, std::span<const Ref> srcs) {
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
    reports_.fail("operands", srcs.empty() ? dsts.front().mark : srcs.front().mark,
                  fmt::format("{}, {}", counted(static_cast<int64_t>(dsts.size()), "destination"),
                              counted(static_cast<int64_t>(srcs.size()), "source")));
  }
  return false;
}

}  // namespace mscclc
