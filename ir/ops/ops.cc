// The tables that ops.h declares. Slot notation is parsed at compile time, so a bad row does not
// build.
#include "ir/ops/ops.h"

#include <cstddef>

#include "ir/ops/summations.h"

namespace mscclc {
namespace {

constexpr SlotKind slot_kind(char c) {
  switch (c) {
    case 'L':
      return SlotKind::local;
    case 'R':
      return SlotKind::remote;
    case 'S':
      return SlotKind::switched;
    case 'C':
      return SlotKind::channel;
    case 'M':
      return SlotKind::semaphore;
    case 'F':
      return SlotKind::flag;
    case 'B':
      return SlotKind::block;
    default:
      throw "ops.def: unknown slot";
  }
}

constexpr Slots parse_slots(std::string_view text) {
  Slots slots;
  Slot slot;
  bool open = false;
  for (size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ' ';
    if (c == ' ') {
      if (open) slots.slot[slots.count++] = slot;
      slot = {};
      open = false;
    } else if (c == '~') {
      slot.floating = true;
    } else if (c == 'p') {
      slot.packets = true;
    } else if (c == '*') {
      slot.many = true;
    } else if (c == '=') {
      slot.pairwise = true;
    } else if (c == '/') {
      slot.port_packets = true;
    } else {
      slot.kind = slot_kind(c);
      open = true;
    }
  }
  return slots;
}

constexpr DtypeInfo kDtypes[] = {
#define DTYPE(name, bytes, kind, accumulate, aliases) \
  {Dtype::name, #name, bytes, DtypeKind::kind, Dtype::accumulate, aliases},
#include "ir/ops/dtypes.def"
#undef DTYPE
};

constexpr std::string_view kReduceOps[] = {"call", "sum", "min", "max", "prod", "avg"};
constexpr std::string_view kChannelKinds[] = {"memory", "port", "switch"};

/// Position of `name` in a table of names, from `first` on.
template <class Enum, size_t N>
std::optional<Enum> find_in(const std::string_view (&table)[N], std::string_view name,
                            size_t first = 0) {
  for (size_t i = first; i < N; ++i) {
    if (table[i] == name) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

bool has_word(std::string_view words, std::string_view word) {
  while (!words.empty()) {
    const size_t end = std::min(words.find(' '), words.size());
    if (words.substr(0, end) == word) return true;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return false;
}

}  // namespace

constexpr OpInfo detail::kOps[] = {
#define OP(name, wire, relaxed, channels, dsts, srcs, effects, cost, made_of, runs_as, summary) \
  {OpKind::name,                                                                                \
   #name,                                                                                       \
   wire,                                                                                        \
   relaxed,                                                                                     \
   channels,                                                                                    \
   dsts,                                                                                        \
   srcs,                                                                                        \
   parse_slots(dsts),                                                                           \
   parse_slots(srcs),                                                                           \
   effects,                                                                                     \
   CostClass::cost,                                                                             \
   made_of,                                                                                     \
   runs_as,                                                                                     \
   summary},
#include "ir/ops/ops.def"
#undef OP
};

std::span<const OpInfo> op_table() { return detail::kOps; }

std::optional<OpKind> find_op(std::string_view name) {
  for (const OpInfo& op : detail::kOps) {
    if (op.name == name) return op.kind;
  }
  return std::nullopt;
}

std::optional<OpKind> find_wire_op(std::string_view wire, bool& relaxed) {
  if (wire.empty()) return std::nullopt;
  for (const OpInfo& op : detail::kOps) {
    relaxed = op.relaxed == wire;
    if (relaxed || op.wire == wire) return op.kind;
  }
  return std::nullopt;
}

std::span<const DtypeInfo> dtype_table() { return kDtypes; }

std::optional<Dtype> find_dtype(std::string_view name) {
  for (const DtypeInfo& t : kDtypes) {
    if (t.name == name || has_word(t.aliases, name)) return t.dtype;
  }
  return std::nullopt;
}

std::string_view name(ReduceOp op) { return kReduceOps[static_cast<size_t>(op)]; }
std::optional<ReduceOp> find_reduce_op(std::string_view name) {
  return find_in<ReduceOp>(kReduceOps, name, 1);
}

std::optional<Summation> find_summation(std::string_view name) {
  for (const SummationInfo& row : summations()) {
    if (row.name == name) return row.summation;
  }
  return std::nullopt;
}

std::optional<PacketFormat> find_packet_format(std::string_view name) {
  for (const PacketFormatInfo& row : packet_formats()) {
    if (row.name == name) return row.format;
  }
  return std::nullopt;
}

std::string_view name(ChannelKind kind) { return kChannelKinds[static_cast<size_t>(kind)]; }
std::optional<ChannelKind> find_channel_kind(std::string_view name) {
  return find_in<ChannelKind>(kChannelKinds, name);
}

}  // namespace mscclc
