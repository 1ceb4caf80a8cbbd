#include "passes/thread_partition.h"

#include <algorithm>

#include "passes/passes.h"

namespace mscclc {
namespace {

std::span<const Operand> operands(const Program& program, const Op& op) {
  return {program.operands.data() + op.operands, size_t{op.dsts} + op.srcs};
}

PacketFormat format_of(const Program& program, uint32_t rank, const Op& op) {
  // Most have packets first (destinations) or last (sources).
  const PacketFormat last = program.buffer_of(rank, operands(program, op).back()).packets;
  if (last != PacketFormat::none) return last;
  for (const Operand& o : operands(program, op)) {
    const PacketFormat format = program.buffer_of(rank, o).packets;
    if (format != PacketFormat::none) return format;
  }
  return PacketFormat::none;
}

size_t callers_operands(const Program& program, const Op& op) {
  return static_cast<size_t>(std::ranges::count_if(
      operands(program, op), [](const Operand& o) { return o.buffer < kFirstScratch; }));
}

}  // namespace

bool same_threads(const Program& program, uint32_t rank, const Op& a, const Op& b, uint32_t count,
                  bool callers) {
  if (info(a.kind).cost != CostClass::kPacket || info(b.kind).cost != CostClass::kPacket) {
    return false;
  }
  if (a.part != b.part || a.parts != b.parts) return false;
  for (const Op* op : {&a, &b}) {
    if (channel_kind(program, rank, *op) != ChannelKind::memory) return false;
    // The reference itself is the only one that may break a run.
    if (count > 1 && callers_operands(program, *op) != (callers ? 1 : 0)) return false;
  }
  return format_of(program, rank, a) == format_of(program, rank, b);
}

}  // namespace mscclc
