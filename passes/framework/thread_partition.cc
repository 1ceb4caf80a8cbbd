#include "passes/framework/thread_partition.h"

#include <algorithm>

#include "ir/program/applied.h"
#include "passes/framework/passes.h"

namespace mscclc {
namespace {

size_t callers_operands(const Program& program, const Op& op) {
  return static_cast<size_t>(std::ranges::count_if(
      program.all_operands(op), [](const Operand& o) { return o.buffer < kFirstScratch; }));
}

}  // namespace

// Packets are among the first of an op's destinations or of its sources: ops may have thousands.
PacketFormat packet_format(const Program& program, uint32_t rank, const Op& op) {
  const std::span<const Operand> dsts = program.dsts(op), srcs = program.srcs(op);
  const auto format = [&](std::span<const Operand> side, size_t i) {
    return i < side.size() ? program.buffer_of(rank, side[i]).packets : PacketFormat::none;
  };
  for (size_t i = 0; i < std::max(dsts.size(), srcs.size()); ++i) {
    if (format(srcs, i) != PacketFormat::none) return format(srcs, i);
    if (format(dsts, i) != PacketFormat::none) return format(dsts, i);
  }
  return PacketFormat::none;
}

std::optional<PacketFormat> way_of_sharing(const Program& program, uint32_t rank, const Op& op) {
  if (channel_kind(program, rank, op) != ChannelKind::memory) return std::nullopt;
  const bool packets = info(op.kind).cost == CostClass::kPacket;
  if (!packets && !info(op.kind).has(kReduces)) return std::nullopt;
  return packets ? packet_format(program, rank, op) : PacketFormat::none;
}

bool share_alike(const Program& program, uint32_t rank, const Op& a, const Op& b) {
  if (a.part != b.part || a.parts != b.parts) return false;
  const auto way = way_of_sharing(program, rank, a);
  return way && way == way_of_sharing(program, rank, b);
}

bool same_threads(const Program& program, uint32_t rank, const Op& a, const Op& b, uint32_t count,
                  bool callers) {
  for (const Op* op : {&a, &b}) {
    if (info(op->kind).cost != CostClass::kPacket || applies(*op)) return false;
    if (channel_kind(program, rank, *op) != ChannelKind::memory) return false;
    // The reference itself is the only one that may break a run.
    if (count > 1 && callers_operands(program, *op) != (callers ? 1 : 0)) return false;
  }
  return share_alike(program, rank, a, b);
}

}  // namespace mscclc
