#include "plans/format/wire/mscclpp_rules.h"

#include <algorithm>
#include <array>
#include <string>

#include "ir/program/applied.h"
#include "ir/support/precondition.h"

namespace mscclc {
namespace {

struct FaultText {
  std::string_view name, text;
};
constexpr FaultText kFaults[] = {
    {"none", ""},
#define MSCCLPP_FAULT(name, text) {#name, text},
#include "plans/format/wire/mscclpp_rules.def"
};

/// REQUIRES: not in_turn.
MscclppFault fault_of(Summation summation) {
  precondition(summation != Summation::in_turn);
  return summation == Summation::tree ? MscclppFault::tree : MscclppFault::exact;
}

struct LongNames {
  std::string plain, relaxed;
};

/// Long names of all ops: the op's own name where no wire name is spelt so.
const std::vector<LongNames>& long_names() {
  static const std::vector<LongNames> kNames = [] {
    std::vector<LongNames> names;
    for (const OpInfo& op : op_table()) {
      bool relaxed = false;
      const bool taken = find_wire_op(op.name, relaxed).has_value();
      const std::string own(op.name);
      names.push_back(
          {taken ? "mscclc_" + own : own, op.relaxed.empty() ? std::string() : "relaxed_" + own});
    }
    return names;
  }();
  return kNames;
}

constexpr uint8_t bit_of(WireType type) {
  return static_cast<uint8_t>(1u << static_cast<uint32_t>(type));
}
constexpr uint8_t kScratchBit = bit_of(WireType::scratch);
constexpr uint8_t kCallerBits = bit_of(WireType::input) | bit_of(WireType::output);

bool is_single(uint8_t bits) { return (bits & (bits - 1)) == 0; }

/// True if a rank reaches more buffers through ports than MSCCL++'s proxy can number.
bool exceeds_ports(const Program& program, const WireLayout& layout, uint32_t rank) {
  std::vector<uint64_t> ports;  // peers of port channels; then (peer, type) of what ops reach
  for (const Channel& c : program.ranks[rank].channels) {
    if (c.kind == ChannelKind::port) ports.push_back(c.peer);
  }
  if (ports.size() > MscclppRules::kMaxPorts) return true;
  if (3 * ports.size() <= MscclppRules::kMaxPortBuffers) return false;
  ports.clear();
  for (const Op& op : program.ranks[rank].ops) {
    if ((info(op.kind).channels & kPort) == 0 || !info(op.kind).moves_data()) continue;
    for (const Operand& o : program.dsts(op)) {
      if (o.channel == kNone) continue;
      const Channel& c = program.ranks[rank].channels[o.channel];
      if (c.kind != ChannelKind::port) continue;
      ports.push_back(uint64_t{c.peer} << 2 |
                      static_cast<uint64_t>(layout.buffer(c.peer, o.buffer).type));
    }
  }
  std::sort(ports.begin(), ports.end());
  return std::unique(ports.begin(), ports.end()) - ports.begin() > MscclppRules::kMaxPortBuffers;
}

/// True if ranks cut doubled scratch at different places, whatever their buffers: packets that one
/// writes then lie where the other does not look. Shared scratch is cut at a fixed place.
bool has_uneven_halves(const Program& program, const WireLayout& layout) {
  if (!layout.packets || !layout.double_scratch || program.launch.reuse_scratch) return false;
  for (uint32_t r = 1; r < program.ranks.size(); ++r) {
    const auto chunks = [&](uint32_t rank) { return program.ranks[rank].buffers[kInput].chunks; };
    if (chunks(r) != chunks(0) || layout.scratch_chunks[r] != layout.scratch_chunks[0]) return true;
  }
  return false;
}

}  // namespace

std::string_view name(MscclppFault fault) { return kFaults[static_cast<size_t>(fault)].name; }
std::string_view text(MscclppFault fault) { return kFaults[static_cast<size_t>(fault)].text; }

std::string_view long_name(OpKind kind, bool relaxed) {
  const LongNames& names = long_names()[static_cast<size_t>(kind)];
  return relaxed ? names.relaxed : names.plain;
}

std::optional<OpKind> find_long_name(std::string_view name, bool& relaxed) {
  if (name.empty()) return std::nullopt;
  for (const OpInfo& op : op_table()) {
    relaxed = long_name(op.kind, true) == name;
    if (relaxed || long_name(op.kind, false) == name) return op.kind;
  }
  return std::nullopt;
}

MscclppRules::MscclppRules(const Program& program, const WireLayout& layout)
    : program_(program),
      double_scratch_(layout.double_scratch),
      uneven_halves_(has_uneven_halves(program, layout)) {
  for (uint32_t r = 0; r < program.ranks.size(); ++r) {
    const std::vector<Buffer>& buffers = program.ranks[r].buffers;
    if (buffers[kInput].chunks == 0 || buffers[kOutput].chunks == 0) {
      whole_plan_ = MscclppFault::no_chunks;
    }
    const std::vector<Channel>& channels = program.ranks[r].channels;
    if (std::ranges::any_of(channels, [](const Channel& c) { return c.credits != 0; })) {
      whole_plan_ = MscclppFault::credits;
    }
    many_ports_.push_back(exceeds_ports(program, layout, r));
  }
}

MscclppFault MscclppRules::judge_buffer(const WireBuffer& buffer) const {
  if (buffer.type != WireType::scratch) return MscclppFault::none;
  if (buffer.packets != PacketFormat::none && info(buffer.packets).protocol.empty()) {
    return MscclppFault::packet_format;
  }
  if (buffer.units != 0) return MscclppFault::units;
  return buffer.copies > (double_scratch_ ? 2u : 1u) ? MscclppFault::copies : MscclppFault::none;
}

MscclppFault MscclppRules::judge_kind(const Op& op, const OpFacts& facts) const {
  if (whole_plan_ != MscclppFault::none) return whole_plan_;
  const OpInfo& row = info(op.kind);
  if (applies(op)) return MscclppFault::row_function;
  if (row.wire.empty()) return MscclppFault::no_such_op;
  if (op.kind == OpKind::flush) return MscclppFault::flush_ignored;
  if (facts.signals_early) return MscclppFault::signal_order;
  return row.moves_data() ? judge_move(op, facts) : MscclppFault::none;
}

MscclppFault MscclppRules::judge_move(const Op& op, const OpFacts& facts) const {
  if (facts.buffer != MscclppFault::none) return facts.buffer;
  if (facts.unmatched_switch) return MscclppFault::switch_order;
  if (facts.unaligned_switch) return MscclppFault::switch_layout;
  if (op.reduce != ReduceOp::call && op.reduce != ReduceOp::sum) return MscclppFault::reduction;
  if (op.summation != Summation::in_turn) return fault_of(op.summation);
  if (facts.plain_in_the_middle) return MscclppFault::plain_in_the_middle;
  if (facts.plain_remote_scratch && double_scratch_) return MscclppFault::double_scratch;
  if ((facts.remote & kScratchBit) != 0 && uneven_halves_) return MscclppFault::uneven_halves;
  if (op.loop != kNone && op.parts != 0) return MscclppFault::part_in_pipeline;
  if (program_.launch.reuse_scratch) {
    if ((facts.remote & kCallerBits) != 0) return MscclppFault::shared_remote;
    const bool mixed = (facts.local & kScratchBit) != 0 && (facts.local & kCallerBits) != 0;
    const bool reduces = op.kind == OpKind::reduce || op.kind == OpKind::reduce_send;
    if (reduces && mixed) return MscclppFault::shared_reduce;
  }
  return judge_operands(op, facts);
}

/// What single ops do wrongly with some of their operands.
MscclppFault MscclppRules::judge_operands(const Op& op, const OpFacts& facts) const {
  const bool port = facts.remote != 0 && facts.channel == ChannelKind::port;
  switch (op.kind) {
    case OpKind::get:
      // Shared scratch may have another distance between chunks than the caller's buffers.
      if (facts.offsets_differ || facts.remote != kScratchBit ||
          (program_.launch.reuse_scratch && facts.local != kScratchBit)) {
        return MscclppFault::get_offsets;
      }
      break;
    case OpKind::put_packets:
      if (port) return MscclppFault::port_packets;
      [[fallthrough]];
    case OpKind::put:
      if (!port && !is_single(facts.local_sources)) return MscclppFault::mixed_sources;
      [[fallthrough]];
    case OpKind::put_with_signal:
    case OpKind::put_with_signal_and_flush:
      if (port && (facts.local_sources & kCallerBits) != 0) return MscclppFault::port_source;
      break;
    case OpKind::unpack_packets:
      if (op.dsts > 1) return MscclppFault::many_unpacked;
      break;
    default:
      break;
  }
  return MscclppFault::none;
}

MscclppFault MscclppRules::judge_limits(uint32_t rank, const Op& op, const OpFacts& facts) const {
  const bool moves = info(op.kind).moves_data();
  if (moves && std::max(op.dsts, op.srcs) > 10) return MscclppFault::many_operands;
  if (moves && facts.ids > 8) return MscclppFault::many_channels;
  if (facts.ids > program_.launch.threads) return MscclppFault::few_threads;
  if (info(op.kind).has(kReleases) || info(op.kind).has(kAcquires)) {
    if (facts.ids > 16) return MscclppFault::many_semaphores;
  }
  if (facts.barrier >= 16) return MscclppFault::many_barriers;
  if (facts.channel_position >= 16) return MscclppFault::block_channels;
  if (facts.buffer_position >= 16) return MscclppFault::block_buffers;
  const bool port = facts.channel == ChannelKind::port && (facts.remote != 0 || facts.ids > 0);
  if (port && many_ports_[rank]) return MscclppFault::many_ports;
  return MscclppFault::none;
}

}  // namespace mscclc

#undef MSCCLPP_FAULT
