// Barriers: one arrival per block.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/builder/builder_state.h"

namespace mscclc {

bool Builder::barrier(const List& blocks, Mark mark) {
  BuilderState& s = *state_;
  if (!s.sealed) seal();
  if (s.gave_up || !s.ready()) return false;
  if (s.group != kNone) {
    s.fail("nesting", {}, "'barrier' inside 'group'");
    return false;
  }
  std::vector<Operand> members;
  if (!s.barrier_members(blocks, mark, members)) return false;
  std::vector<int64_t> ids;
  for (const Operand& member : members) ids.push_back(member.first);
  s.barrier_marks.try_emplace(std::move(ids), mark);
  if (s.block != kNone) return s.arrive(s.block, members);
  for (const Operand& member : members) {
    if (!s.arrive(member.first, members)) return false;
  }
  return true;
}

/// Appends the arrival of block `b` at a barrier.
bool BuilderState::arrive(uint32_t b, std::span<const Operand> members) {
  if (!room_for(members.size())) return false;
  if (!need_block(b)) return false;
  block_uses[b].has_ops = true;
  Op op;
  op.kind = OpKind::barrier;
  op.block = b;
  op.loop = loop;
  op.locations = present_locations();
  program.set_operands(op, members, {});
  out->ops.push_back(op);
  return true;
}

bool BuilderState::barrier_members(const List& blocks, Mark mark, std::vector<Operand>& members) {
  if (blocks.count == 0) {
    fail("barrier", mark, "an empty barrier");
    return false;
  }
  if (blocks.count > kMaxBlocks) {
    fail("barrier", mark, fmt::format("a barrier of more than {} blocks", kMaxBlocks));
    return false;
  }
  bool holds_this = block == kNone || program.foreign;
  for (int64_t i = 0; i < blocks.count; ++i) {
    const int64_t b = blocks[i];
    if (b < 0 || b >= kMaxBlocks) {
      fail("block", mark, fmt::format("tb {}: thread blocks are 0 to {}", b, kMaxBlocks - 1));
      return false;
    }
    const auto same = [&](const Operand& o) { return o.first == b; };
    if (blocks.data != nullptr && std::ranges::any_of(members, same)) {
      fail("barrier", mark, fmt::format("tb {} appears twice in the barrier", b));
      return false;
    }
    holds_this = holds_this || b == block;
    members.push_back({.first = static_cast<uint32_t>(b)});
  }
  if (!holds_this) {
    fail("barrier", mark,
         fmt::format("tb {} is not in the barrier {}", block, blocks_text(blocks)));
    return false;
  }
  return true;
}

}  // namespace mscclc
