// Copies that devices do as moves of a step on packets beside them: they take no step of their own.
// Programs of blocks have them so (block_programs.h), and the cost model counts on it; not those
// with row functions, as the lengths of a call decide it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "executor/interpreter/layout.h"

namespace mscclc {

/// What a block moves in one step, as far as it matters for what stands beside it.
struct StepPiece {
  device::StepKind kind;
  PacketFormat format;
  uint32_t flags;       ///< device::kInLoop …
  uint32_t dsts, srcs;  ///< of each of its moves
  /// Bytes or packet units, counted from the beginning of the stretch of which they are a piece.
  uint64_t begin, end;
  uint64_t length;                ///< bytes of data of that stretch
  bool to_packets, from_packets;  ///< what its first destination and its first source hold

  bool in_loop_or_posted() const { return (flags & (device::kInLoop | device::kPosts)) != 0; }
};

/// Do a copy and a step on packets go over the same bytes, so that it may be one of that step's
/// moves? A sentinel beside it would cost plain data its -0.0.
inline bool goes_beside(const StepPiece& copy, const StepPiece& packets) {
  if (copy.kind != device::StepKind::copy || copy.in_loop_or_posted()) return false;
  if (packets.kind != device::StepKind::move_packets || is_sentinel(packets.format)) return false;
  if (copy.dsts != 1 || copy.srcs != 1 || copy.length != packets.length) return false;
  const uint64_t data = info(packets.format).data;
  return packets.begin < packets.end && copy.begin == packets.begin * data &&
         copy.end == std::min(packets.end * data, packets.length);
}

/// Does a copy become one of the moves of the step right after it, which unpacks? Its loads overlap
/// the wait. Nothing that one of the two writes is touched by the other, or a `sync` would stand
/// between them.
inline bool is_taken_by_next(const StepPiece& copy, const StepPiece& next) {
  return !next.to_packets && next.dsts == 1 && next.srcs == 1 && goes_beside(copy, next);
}

/// Does a copy, the last step of its block, become one of the moves of the step right before it,
/// which makes packets of plain data? One with several destinations loads its source once, so it
/// takes the copy only if that is of the same. (A copy before a step that unpacks belongs to that.)
inline bool is_taken_by_last(const StepPiece& copy, const StepPiece& last, bool same_source) {
  return last.to_packets && !last.from_packets && last.srcs == 1 && !last.in_loop_or_posted() &&
         goes_beside(copy, last) && (last.dsts == 1 || same_source);
}

}  // namespace mscclc
