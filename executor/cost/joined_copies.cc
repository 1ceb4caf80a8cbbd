#include "executor/cost/joined_copies.h"

#include <algorithm>

#include "executor/copies_beside.h"
#include "ir/support/precondition.h"

namespace mscclc::cost {

using device::DeviceOp;
using device::DeviceOperand;
using device::Move;
using device::StepKind;
using device::Stretch;

namespace {

/// Does an op become one step, of moves that are alike and go over one stretch?
bool is_one_step(const RankProgram& rank, const DeviceOp& op) {
  if (op.kind != StepKind::copy && op.kind != StepKind::move_packets) return false;
  for (uint32_t i = 0; i < op.count; ++i) {
    const Move& move = rank.moves[op.first + i];
    if (move.run_count != 1 || (i > 0 && !move.like_last)) return false;
  }
  return op.count > 0;
}

/// REQUIRES: is_one_step().
StepPiece piece_of(const RankProgram& rank, const DeviceOp& op) {
  precondition([&] { return is_one_step(rank, op); });
  const Move& move = rank.moves[op.first];
  const Stretch& run = rank.runs[move.runs];
  const uint64_t size = op.format == PacketFormat::none ? run.length : run.size;
  const uint64_t begin = std::max(run.begin, move.begin);
  const uint64_t end = std::max(begin, std::min(run.begin + size, move.end));
  const auto holds_packets = [&](uint32_t operand) {
    return (rank.operands[move.operands + operand].flags & device::kPackets) != 0;
  };
  return {.kind = op.kind,
          .format = op.format,
          .flags = op.flags,
          .dsts = move.dsts,
          .srcs = move.srcs,
          .begin = begin - run.begin,
          .end = end - run.begin,
          .length = run.length,
          .to_packets = holds_packets(0),
          .from_packets = holds_packets(move.dsts)};
}

/// Do two moves load their first source from one place?
bool from_one_place(const RankProgram& rank, const Move& a, const Move& b) {
  const auto base = [&](const Move& m) { return rank.operands[m.operands + m.dsts].base; };
  const auto offset = [&](const Move& m) {
    return rank.offsets[rank.runs[m.runs].offsets + m.dsts];
  };
  return base(a) == base(b) && offset(a) == offset(b);
}

/// Moves of one source are one with as many destinations.
bool all_of_one_source(const RankProgram& rank, const DeviceOp& op, const Move& of) {
  for (uint32_t i = 0; i < op.count; ++i) {
    if (!from_one_place(rank, rank.moves[op.first + i], of)) return false;
  }
  return true;
}

bool next_takes(const RankProgram& rank, const DeviceOp& copy, const DeviceOp& next) {
  return copy.count == 1 && is_one_step(rank, copy) && is_one_step(rank, next) &&
         is_taken_by_next(piece_of(rank, copy), piece_of(rank, next));
}

bool last_takes(const RankProgram& rank, const DeviceOp& copy, const DeviceOp& last) {
  if (copy.count != 1 || !is_one_step(rank, copy) || !is_one_step(rank, last)) return false;
  StepPiece piece = piece_of(rank, last);
  if (all_of_one_source(rank, last, rank.moves[last.first])) piece.dsts *= last.count;
  const bool same = all_of_one_source(rank, last, rank.moves[copy.first]);
  return is_taken_by_last(piece_of(rank, copy), piece, same);
}

}  // namespace

JoinedCopies::JoinedCopies(const RankProgram& rank)
    : copies_(rank.ops.size(), kNoOp), joined_(rank.ops.size(), false) {
  if (rank.keeps_steps()) return;
  for (size_t b = 0; b + 1 < rank.block_begin.size(); ++b) {
    const uint32_t begin = rank.block_begin[b], end = rank.block_begin[b + 1];
    for (uint32_t i = begin; i + 1 < end; ++i) {
      if (next_takes(rank, rank.ops[i], rank.ops[i + 1])) join(i, i + 1);
    }
    if (begin + 2 > end || joined_[end - 2]) continue;
    if (last_takes(rank, rank.ops[end - 1], rank.ops[end - 2])) join(end - 1, end - 2);
  }
}

void JoinedCopies::join(uint32_t copy, uint32_t step) {
  copies_[step] = copy;
  joined_[copy] = true;
}

}  // namespace mscclc::cost
