#include "passes/framework/op_size.h"

#include <algorithm>

namespace mscclc {
namespace {

constexpr size_t kMaxOperands = 0xffff;  // Op counts them in 16 bits

size_t least(size_t most, uint32_t limit) {
  return limit == 0 ? most : std::min<size_t>(most, limit);
}

}  // namespace

size_t most_operands(const OpLimits& limits, OpKind kind, ChannelKind channel) {
  const OpInfo& row = info(kind);
  if (row.has(kReleases) || row.has(kAcquires)) return least(kMaxOperands, limits.semaphores);
  if (!row.moves_data()) return least(kMaxOperands, limits.channels);
  const size_t most = least(kMaxOperands, limits.operands);
  if (kind == OpKind::unpack_packets) return least(most, limits.unpacks);
  const bool lists_channels = channel == ChannelKind::port || kind == OpKind::get;
  return lists_channels ? least(most, limits.channels) : most;
}

bool lacks(const OpLimits& limits, OpKind kind) {
  return (limits.absent >> static_cast<uint32_t>(kind) & 1) != 0;
}

bool wants_one_source_kind(const OpLimits& limits, OpKind kind, ChannelKind channel) {
  return limits.one_source_kind && channel == ChannelKind::memory &&
         (kind == OpKind::put || kind == OpKind::put_packets);
}

BufferKind buffer_kind(const Program& program, uint32_t rank, const Operand& local) {
  return program.ranks[rank].buffers[local.buffer].kind;
}

}  // namespace mscclc
