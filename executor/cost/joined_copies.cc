#include "executor/cost/joined_copies.h"

#include <algorithm>

namespace mscclc::cost {

using device::DeviceOp;
using device::kPackets;
using device::Move;
using device::StepKind;
using device::Stretch;

namespace {

/// An op's only stretch of bytes or packet units, as far as its block moves it.
struct Piece {
  uint64_t begin, end;  ///< from the stretch's beginning on
  uint64_t length;      ///< bytes of data of the stretch
};

bool may_join(const DeviceOp& op) { return (op.flags & (device::kInLoop | device::kPosts)) == 0; }

/// Moves from one place to one place, in one piece? Of an op of several moves, the first.
bool is_plain_pair(const RankProgram& rank, const DeviceOp& op) {
  const Move& move = rank.moves[op.first];
  return move.dsts == 1 && move.srcs == 1 && move.run_count == 1;
}

Piece piece_of(const RankProgram& rank, const DeviceOp& op) {
  const Move& move = rank.moves[op.first];
  const Stretch& run = rank.runs[move.runs];
  const uint64_t size = op.format == PacketFormat::none ? run.length : run.size;
  const uint64_t begin = std::max(run.begin, move.begin);
  const uint64_t end = std::max(begin, std::min(run.begin + size, move.end));
  return {begin - run.begin, end - run.begin, run.length};
}

bool holds_packets(const RankProgram& rank, const Move& move, uint32_t operand) {
  return (rank.operands[move.operands + operand].flags & kPackets) != 0;
}

/// Do a copy and a step on packets go over the same bytes? A sentinel beside them would cost plain
/// data its -0.0.
bool goes_beside(const RankProgram& rank, const DeviceOp& copy, const DeviceOp& step) {
  if (copy.kind != StepKind::copy || copy.count != 1 || !may_join(copy)) return false;
  if (step.kind != StepKind::move_packets || !may_join(step) || is_sentinel(step.format)) {
    return false;
  }
  if (!is_plain_pair(rank, copy)) return false;
  const Move& move = rank.moves[step.first];
  if (move.run_count != 1 || move.srcs != 1) return false;
  const uint64_t unit = info(step.format).data;
  const Piece plain = piece_of(rank, copy), packets = piece_of(rank, step);
  return plain.length == packets.length && packets.begin < packets.end &&
         plain.begin == packets.begin * unit &&
         plain.end == std::min(packets.end * unit, packets.length);
}

bool unpacks(const RankProgram& rank, const DeviceOp& step) {
  const Move& move = rank.moves[step.first];
  return move.dsts == 1 && !holds_packets(rank, move, 0);
}

bool sends_plain_data(const RankProgram& rank, const DeviceOp& step) {
  const Move& move = rank.moves[step.first];
  return holds_packets(rank, move, 0) && !holds_packets(rank, move, move.dsts);
}

}  // namespace

JoinedCopies::JoinedCopies(const RankProgram& rank)
    : copies_(rank.ops.size(), kNoOp), joined_(rank.ops.size(), false) {
  for (size_t b = 0; b + 1 < rank.block_begin.size(); ++b) {
    const uint32_t begin = rank.block_begin[b], end = rank.block_begin[b + 1];
    for (uint32_t i = begin; i + 1 < end; ++i) {
      const DeviceOp &op = rank.ops[i], &next = rank.ops[i + 1];
      if (goes_beside(rank, op, next) && unpacks(rank, next)) join(i, i + 1);
    }
    if (begin + 2 > end) continue;
    const DeviceOp &last = rank.ops[end - 1], &before = rank.ops[end - 2];
    if (!joined_[end - 2] && goes_beside(rank, last, before) && sends_plain_data(rank, before)) {
      join(end - 1, end - 2);
    }
  }
}

void JoinedCopies::join(uint32_t copy, uint32_t step) {
  copies_[step] = copy;
  joined_[copy] = true;
}

}  // namespace mscclc::cost
