// Ops, packet formats and channel kinds: enums and their tables, made from ops.def and formats.def.
// Everything that knows an op by name or shape asks here.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "ir/ops/dtypes.h"

namespace mscclc {

/// What one operand slot of an op accepts.
enum class SlotKind : uint8_t { local, remote, switched, channel, semaphore, flag, block };

/// One operand slot, parsed from the table's notation ("Rp*").
struct Slot {
  SlotKind kind = SlotKind::local;
  bool packets = false;       ///< the chunk lies in a packet buffer
  bool many = false;          ///< one or more ('*')
  bool pairwise = false;      ///< as many as destinations ('=')
  bool floating = false;      ///< may stand anywhere among the following slot's operands ('~')
  bool port_packets = false;  ///< in a packet buffer where the op's channels are ports ('/')
};

/// The operand slots of one side of an op; at most three.
struct Slots {
  std::array<Slot, 3> slot{};
  uint8_t count = 0;
  const Slot* begin() const { return slot.data(); }
  const Slot* end() const { return slot.data() + count; }
  /// The slot that operand `i` of this side falls into; `in_packets`: it lies in a packet buffer.
  /// REQUIRES: count > 0.
  const Slot& of(size_t i, bool in_packets) const {
    if (slot[0].floating) return slot[in_packets ? 1 : 0];
    return slot[i < count ? i : count - 1u];
  }
};

/// Kinds of channel, as bits so that a row can accept several.
enum ChannelKinds : uint8_t { kNoChannel = 0, kMemory = 1, kPort = 2, kSwitch = 4 };

/// What an op does besides moving its operands, as bits.
enum Effects : uint16_t {
  kNoEffect = 0,
  kSignals = 1,
  kWaits = 2,
  kFlushes = 4,
  kReleases = 8,
  kAcquires = 16,
  kMeets = 32,
  kSyncs = 64,
  kReduces = 128,
  kPolls = 256,
  kApplies = 512,
  kAwaitsFlags = 1024,
  kNotifiesFlags = 2048,
};

enum class CostClass : uint8_t { kControl, kMove, kReduce, kPacket };

enum class OpKind : uint8_t {
#define OP(name, ...) name,
#include "ir/ops/ops.def"
#undef OP
};

/// How many there are.
inline constexpr size_t kOpKinds = 0
#define OP(...) +1
#include "ir/ops/ops.def"
#undef OP
    ;

/// One row of the op table.
struct OpInfo {
  OpKind kind;
  std::string_view name;
  std::string_view wire;     ///< "" if MSCCL++'s format has no such op
  std::string_view relaxed;  ///< wire name of the relaxed form, or ""
  uint8_t channels;          ///< ChannelKinds bits
  std::string_view dst_text, src_text;
  Slots dsts, srcs;
  uint16_t effects;  ///< Effects bits
  CostClass cost;
  std::string_view made_of;  ///< names of the parts in execution order, separated by spaces
  std::string_view runs_as;  ///< names of the steps that machines run; the executor parses it
  std::string_view summary;

  bool has(Effects e) const { return (effects & e) != 0; }
  /// True for ops whose operands are flags of external arrays.
  bool has_flags() const { return (effects & (kAwaitsFlags | kNotifiesFlags)) != 0; }
  /// True for ops that move data (their operands are chunks).
  bool moves_data() const { return dsts.count > 0 && dsts.slot[0].kind <= SlotKind::switched; }
};

namespace detail {
extern const OpInfo kOps[];  // here so that info() is one load: it is asked for every op
}

/// All rows, in table order; index by OpKind.
std::span<const OpInfo> op_table();
inline const OpInfo& info(OpKind kind) { return detail::kOps[static_cast<size_t>(kind)]; }
std::optional<OpKind> find_op(std::string_view name);
/// Finds the row whose wire or relaxed wire name this is; `relaxed` says which.
std::optional<OpKind> find_wire_op(std::string_view wire, bool& relaxed);

/// How data in a packet buffer says that it has come; none: a plain buffer.
enum class PacketFormat : uint8_t {
  none,
#define FORMAT(name, ...) name,
#include "ir/ops/formats.def"
#undef FORMAT
};

/// Where a unit of packets says that it has come.
enum class PacketMark : uint8_t {
  none,
  flags,     ///< a 4-byte flag after every 4 bytes of data
  line,      ///< an 8-byte flag in the unit's last word
  sentinel,  ///< no word of data holds the sentinel, -0.0; a reader puts it back
};

/// One row of the table of packet formats.
struct PacketFormatInfo {
  PacketFormat format;
  std::string_view name;
  uint32_t data, wire;  ///< a unit of `data` bytes takes `wire` bytes in the slot
  PacketMark mark;
  uint32_t store;             ///< bytes that a GPU stores at once
  uint32_t whole;             ///< bytes that must become visible together
  std::string_view protocol;  ///< "" if MSCCL++'s executor does not know it
  std::string_view summary;

  /// May ports send such packets, and links other than NVLink carry them? Copy engines and networks
  /// keep words of 8 bytes whole, not lines: a flag may come before its data.
  constexpr bool goes_everywhere() const { return whole <= 8; }
  /// More data than flags: what large messages travel in.
  constexpr bool is_dense() const { return mark != PacketMark::none && 2 * data > wire; }
};

namespace detail {
inline constexpr PacketFormatInfo kFormats[] = {
    {PacketFormat::none, "none", 16, 16, PacketMark::none, 16, 0, "", ""},
#define FORMAT(name, data, wire, mark, store, whole, protocol, summary) \
  {PacketFormat::name, #name, data, wire, PacketMark::mark, store, whole, protocol, summary},
#include "ir/ops/formats.def"
#undef FORMAT
};
}  // namespace detail

/// The row of a format; `none` has one too, whose units are those of plain data: 16 bytes.
constexpr const PacketFormatInfo& info(PacketFormat format) {
  return detail::kFormats[static_cast<size_t>(format)];
}
/// All rows, in table order, without `none`; row i is that of format i + 1.
constexpr std::span<const PacketFormatInfo> packet_formats() {
  return std::span(detail::kFormats).subspan(1);
}
constexpr std::string_view name(PacketFormat format) { return info(format).name; }
std::optional<PacketFormat> find_packet_format(std::string_view name);
/// Packets whose reader puts a sentinel back: a slot is filled and read once a call.
constexpr bool is_sentinel(PacketFormat format) {
  return info(format).mark == PacketMark::sentinel;
}

enum class ChannelKind : uint8_t { memory, port, switch_ };
std::string_view name(ChannelKind kind);
std::optional<ChannelKind> find_channel_kind(std::string_view name);
inline uint8_t bit(ChannelKind kind) { return static_cast<uint8_t>(1u << static_cast<int>(kind)); }

}  // namespace mscclc
