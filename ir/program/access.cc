#include "ir/program/access.h"

namespace mscclc {
namespace {

class Accesses {
 public:
  Accesses(const Program& program, uint32_t rank, std::vector<Access>& out)
      : program_(program), rank_(rank), out_(out) {}

  void append(const Slots& slots, std::span<const Operand> operands, bool write, bool deferred) {
    if (operands.empty()) return;
    if (slots.slot[0].kind == SlotKind::switched) return append_switched(slots, operands, write);
    const bool asks = slots.slot[0].floating;  // then the format of its buffer decides
    for (size_t i = 0; i < operands.size(); ++i) {
      const Operand& o = operands[i];
      const bool in_packets = asks && program_.buffer_of(rank_, o).packets != PacketFormat::none;
      out_.push_back({program_.owner_of(rank_, o), o.buffer, o.first, o.count, write,
                      slots.of(i, in_packets).packets, deferred});
    }
  }

 private:
  /// A side with a switch has nothing else.
  void append_switched(const Slots& slots, std::span<const Operand> operands, bool write) {
    for (const Operand& o : operands) append_members(o, write, slots.slot[0].packets);
  }

  void append_members(const Operand& o, bool write, bool packets) {
    const Rank& rank = program_.ranks[rank_];
    const Buffer& mine = rank.buffers[o.buffer];
    for (const int64_t q : program_.values(rank.channels[o.channel].group)) {
      const uint32_t member = static_cast<uint32_t>(q);
      const uint32_t buffer = member_buffer(program_, member, mine, o.buffer);
      if (buffer == kNone) continue;  // reported by verify_structure
      out_.push_back({member, buffer, o.first, o.count, write, packets, false});
    }
  }

  const Program& program_;
  uint32_t rank_;
  std::vector<Access>& out_;
};

}  // namespace

uint32_t member_buffer(const Program& program, uint32_t member, const Buffer& mine,
                       uint32_t index) {
  const std::vector<Buffer>& buffers = program.ranks[member].buffers;
  const auto same = [&mine](const Buffer& b) {
    return b.kind == mine.kind && b.name == mine.name && b.chunks == mine.chunks;
  };
  if (index < buffers.size() && same(buffers[index])) return index;
  for (uint32_t i = 0; i < buffers.size(); ++i) {
    if (same(buffers[i])) return i;
  }
  return kNone;
}

void append_accesses(const Program& program, uint32_t rank, const Op& op,
                     std::vector<Access>& out) {
  const OpInfo& row = info(op.kind);
  if (!row.moves_data() || op.dsts == 0) return;
  const uint32_t channel = program.dsts(op)[0].channel;
  const bool by_port =
      channel != kNone && program.ranks[rank].channels[channel].kind == ChannelKind::port;
  Accesses accesses(program, rank, out);
  accesses.append(row.srcs, program.srcs(op), false, by_port && !row.has(kFlushes));
  accesses.append(row.dsts, program.dsts(op), true, false);
}

}  // namespace mscclc
