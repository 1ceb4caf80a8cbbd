#include "passes/base/thread_partition.h"

#include <algorithm>

#include "passes/base/passes.h"

namespace mscclc {
namespace {

size_t callers_operands(const Program& program, const Op& op) {
  return static_cast<size_t>(std::ranges::count_if(
      program.all_operands(op), [](const Operand& o) { return o.buffer < kFirstScratch; }));
}

}  // namespace

std::optional<PacketFormat> way_of_sharing(const Program& program, uint32_t rank, const Op& op) {
  const std::vector<Channel>& channels = program.ranks[rank].channels;
  PacketFormat format = PacketFormat::none;
  for (const Operand& o : program.all_operands(op)) {
    if (o.channel != kNone && channels[o.channel].kind != ChannelKind::memory) return std::nullopt;
    if (format == PacketFormat::none) format = program.buffer_of(rank, o).packets;
  }
  if (format == PacketFormat::none && !info(op.kind).has(kReduces)) return std::nullopt;
  return format;
}

bool share_alike(const Program& program, uint32_t rank, const Op& a, const Op& b) {
  if (a.part != b.part || a.parts != b.parts) return false;
  const auto way = way_of_sharing(program, rank, a);
  return way && way == way_of_sharing(program, rank, b);
}

bool same_threads(const Program& program, uint32_t rank, const Op& a, const Op& b, uint32_t count,
                  bool callers) {
  for (const Op* op : {&a, &b}) {
    if (info(op->kind).cost != CostClass::kPacket) return false;
    if (channel_kind(program, rank, *op) != ChannelKind::memory) return false;
    // The reference itself is the only one that may break a run.
    if (count > 1 && callers_operands(program, *op) != (callers ? 1 : 0)) return false;
  }
  return share_alike(program, rank, a, b);
}

}  // namespace mscclc
