// What the chunks of one op must have in common: how many, how long, in which format.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "compiler/builder/builder_state.h"
#include "ir/report/coinciding.h"

namespace mscclc {

bool BuilderState::check_input(std::span<const Ref> dsts) {
  for (const Ref& ref : dsts) {
    if (ref.operand.buffer != kInput) continue;
    fail("input-written", ref.mark, "'input' may be written only with 'inplace: true'");
    return false;
  }
  return true;
}

bool BuilderState::check_sizes(bool pairwise, std::span<const Ref> dsts,
                               std::span<const Ref> srcs) {
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

void BuilderState::note_even(Diagnostic& d) {
  note(d, kind_mark,
       "with 'even: true' in this line the program takes only messages that divide, and this is "
       "right; without it, pair chunks at the same position of their rows");
}

/// Chunks of input and output must be at the same position of a row, or sizes differ by a granule.
/// REQUIRES: both are such chunks.
bool BuilderState::same_size(const Ref& a, const Ref& b) {
  if (program.contract.even_only) return true;
  const auto owner = [&](const Ref& ref) {
    return ref.kind() == SlotKind::remote ? out->channels[ref.operand.channel].peer : rank;
  };
  const uint32_t owner_a = owner(a), owner_b = owner(b);
  // Only rows of different lengths need a look at each chunk.
  const bool ragged = ranks[owner_a].layouts[a.operand.buffer].row_count > 0;
  const uint32_t n = ragged ? a.operand.count : std::min(a.operand.count, 1u);
  for (uint32_t i = 0; i < n; ++i) {
    if (size_class(owner_a, a.operand.buffer, a.operand.first + i) ==
        size_class(owner_b, b.operand.buffer, b.operand.first + i)) {
      continue;
    }
    const auto text = [&](const Ref& ref) {
      return fmt::format("{}[{}]", ref.operand.buffer == kInput ? "input" : "output",
                         ref.operand.first + i);
    };
    const bool input_first = a.operand.buffer != kInput && b.operand.buffer == kInput;
    Diagnostic& d = fail("size-class", b.mark,
                         fmt::format("{} and {} differ in size when the message does not divide",
                                     text(input_first ? b : a), text(input_first ? a : b)));
    note_even(d);
    return false;
  }
  return true;
}

/// Operands that mean the same memory, with no order between them (ir/report/coinciding.h).
bool BuilderState::check_coinciding(const OpInfo& info, std::span<const Ref> dsts,
                                    std::span<const Ref> srcs, const OpOptions& options) {
  const auto operands = [](std::span<const Ref> refs) {
    std::vector<Operand> out;
    for (const Ref& ref : refs) out.push_back(ref.operand);
    return out;
  };
  const std::vector<Operand> to = operands(dsts), from = operands(srcs);
  uint64_t pieces = std::max<uint64_t>(options.parts, 1);
  if (group != kNone) pieces *= program.groups[group].count;
  const auto found = find_coinciding(program, rank, info.kind, pieces, to, from);
  if (!found) return true;
  const auto mark_in = [&](const std::vector<Operand>& side, std::span<const Ref> refs) {
    const bool here = found->at >= side.data() && found->at < side.data() + side.size();
    return here ? refs[static_cast<size_t>(found->at - side.data())].mark : Mark{};
  };
  const Mark mark = found->code == "op-slot-twice" ? mark_in(from, srcs) : mark_in(to, dsts);
  Diagnostic& d = fail(found->code, mark, found->message);
  d.notes.push_back({found->remedy});
  return false;
}

/// Reports packets of two formats. Always false.
bool BuilderState::mixed_formats(std::span<const Ref> dsts, std::span<const Ref> srcs) {
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
      fail("packet-formats", ref.mark,
           fmt::format("{} packets {} {} packets", mscclc::name(first->packets()),
                       from_dst ? "<-" : "beside", mscclc::name(ref.packets())));
      return false;
    }
  }
  return false;
}

}  // namespace mscclc
