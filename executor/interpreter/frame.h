// A program in the form that lowering gives it: the arrays of a rank, which ops walk through
// (layout.h). What the interpreter asks of a program is said in machine.h.
#pragma once

#include "executor/interpreter/machine.h"

namespace mscclc::device {

/// The part of a run that a block moves in one go; counts bytes, or units of a packet format.
struct FrameStretch {
  const Move* move;
  const Stretch* run;
  uint64_t skip;  ///< of the run, before the stretch
  uint64_t count;
  MSCCLC_HD uint64_t length() const { return run->length; }
};

/// What an op runs in: the rank's program, and the pipeline round.
struct Frame {
  using Op = DeviceOp;
  using Stretch = FrameStretch;

  RankView rank;
  uint64_t round_begin = 0;  ///< virtual bytes, in a pipeline
  uint64_t round_unit = 0;
};

inline DeviceLoop loop_of(const Frame& f, const DeviceOp& op) { return f.rank.loops[op.first]; }

/// What of a move's virtual range this block moves now.
inline Range range_of(const Frame& f, const DeviceOp& op, const Move& move) {
  if ((op.flags & kInLoop) == 0) return {move.begin, move.end};
  return share_of_round({f.round_begin, f.round_begin + f.round_unit}, move.end, op.part, op.parts,
                        f.rank.align);
}

template <PacketFormat F, class Fn>
inline void for_each_stretch(const Frame& f, const DeviceOp& op, uint32_t i, Fn fn) {
  const Move& move = f.rank.moves[op.first + i];
  const Range range = range_of(f, op, move);
  for (uint32_t r = 0; r < move.run_count; ++r) {
    const Stretch& run = f.rank.runs[move.runs + r];
    const uint64_t run_end = run.begin + (F == PacketFormat::none ? run.length : run.size);
    const uint64_t begin = range.begin > run.begin ? range.begin : run.begin;
    const uint64_t end = range.end < run_end ? range.end : run_end;
    if (begin < end) fn(FrameStretch{&move, &run, begin - run.begin, end - begin});
  }
}

inline uint32_t dsts_of(const FrameStretch& s) { return s.move->dsts; }
inline uint32_t operands_of(const FrameStretch& s) { return uint32_t{s.move->dsts} + s.move->srcs; }
inline const DeviceOperand& operand_of(const Frame& f, const FrameStretch& s, uint32_t k) {
  return f.rank.operands[s.move->operands + k];
}
inline uint32_t members_of(const Frame& f, const FrameStretch& s, uint32_t k) {
  return operand_of(f, s, k).members;
}
inline uint32_t flags_of(const Frame& f, const FrameStretch& s, uint32_t k) {
  return operand_of(f, s, k).flags;
}
inline uint32_t channel_of(const Frame& f, const FrameStretch& s, uint32_t k) {
  return operand_of(f, s, k).channel;
}

/// Where operand `k` of a move begins in a run, at one member of its switch.
template <class M>
inline uint8_t* address_of(M& m, const Frame& f, const FrameStretch& s, uint32_t k,
                           uint32_t member = 0) {
  const DeviceOperand& operand = operand_of(f, s, k);
  uint8_t* begin = m.base(operand.base + member) + f.rank.offsets[s.run->offsets + k];
  const uint32_t units = operand.flags >> kUnitsShift;
  return units == 0 ? begin : begin - skipped_units(f.round_begin, f.round_unit, units);
}

/// Goes over the sources of a move in written order, at a switch over its members in rank order.
template <PacketFormat F, class M>
class FrameSources {
 public:
  FrameSources(M& m, const Frame& f, const FrameStretch& s, const Piece& piece)
      : m_(m), f_(f), s_(s), piece_(piece), k_(s.move->dsts) {}
  bool more() const { return k_ < operands_of(s_); }
  Source next() {
    const DeviceOperand& operand = operand_of(f_, s_, k_);
    const bool packets = F != PacketFormat::none && (operand.flags & kPackets) != 0;
    const uint8_t* address = address_of(m_, f_, s_, k_, member_);
    if (++member_ == operand.members) {
      member_ = 0;
      ++k_;
    }
    return {packets ? address : address + piece_.offset, packets};
  }

 private:
  M& m_;
  const Frame& f_;
  const FrameStretch& s_;
  const Piece& piece_;
  uint32_t k_, member_ = 0;
};
template <PacketFormat F, class M>
inline FrameSources<F, M> sources_of(M& m, const Frame& f, const FrameStretch& s,
                                     const Piece& piece) {
  return {m, f, s, piece};
}

/// How many moves of an op from `i` on a machine does in step: those that are alike, up to as many
/// as it reads at once.
template <class M>
inline uint32_t in_step(const Frame& f, const DeviceOp& op, uint32_t i) {
  const Move* moves = f.rank.moves + op.first;
  uint32_t n = 1;
  while (n < M::kTogether && i + n < op.count && moves[i + n].like_last) ++n;
  return n;
}

/// The stretch of another move in step with the first, whose stretch is `s`.
inline FrameStretch stretch_beside(const Frame& f, const FrameStretch& s, uint32_t moves_on) {
  const Move* other = s.move + moves_on;
  const Stretch* first = f.rank.runs + s.move->runs;
  return {other, f.rank.runs + other->runs + (s.run - first), s.skip, s.count};
}

inline uint32_t target_of(const Frame& f, const DeviceOp& op, uint32_t i) {
  return f.rank.targets[op.first + i];
}
inline uint32_t channel_of_target(const Frame& f, const DeviceOp& op, uint32_t i) {
  return target_of(f, op, i);
}

}  // namespace mscclc::device
