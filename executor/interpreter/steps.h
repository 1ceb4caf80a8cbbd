// A program in the form in which blocks read it fastest: the steps of one block, each with the
// addresses of its operands, in one piece of memory (block_programs.h makes them). What the
// interpreter asks of a program is said in machine.h.
//
//   StepHeader, Step..., StepOperand..., StepTarget..., StepExtra...
//
// Nothing is looked up through chains of indices: reading a step is all there is to do before its
// first access. An op of several runs, or whose moves are not alike, becomes several steps.
#pragma once

#include "executor/interpreter/machine.h"

namespace mscclc::device {

/// One op of a block: `count` moves that are alike, of one run. Operands of the moves follow one
/// another, destinations first; ranks of a switch count one by one. Those of an `apply` are the
/// results and parameters of its row function, as that declares them: each begins at the first row
/// of the run. Those of a sum that is handed to a row function follow its own operands.
struct Step {
  StepKind kind;
  ReduceOp reduce;
  PacketFormat format;
  uint8_t flags;         ///< OpFlags
  uint16_t part, parts;  ///< in a pipeline: this block's share of a group's op; of family rows
                         ///< the row function, and how many values it has
  uint32_t count;        ///< moves, or targets, or steps of the body that follow a pipeline
  uint32_t first;        ///< operand or target
  uint16_t dsts, srcs;   ///< of each move
  uint32_t source;       ///< the op's index among the rank's ops in the IR
  uint64_t begin, end;   ///< virtual range that lies in the run; pipeline: bytes of a round, rounds
  uint64_t length;       ///< bytes of data from the run's beginning on
  uint64_t run_begin;    ///< where in the virtual range the run begins
  uint64_t move_end;     ///< in a pipeline: where the virtual range of the move ends
};
static_assert(sizeof(Step) == 64);

struct StepOperand {
  uint8_t* address;  ///< of the run, in copy 0
  uint32_t stride;   ///< from one copy to the next, in lines of 128 bytes
  uint16_t copies;   ///< call k uses copy k % copies; not 0
  uint16_t flags;    ///< OperandFlags
  bool operator==(const StepOperand&) const = default;
};
static_assert(sizeof(StepOperand) == 16);
inline constexpr uint32_t kCopyLine = 128;

/// What an op that synchronises is about.
struct StepTarget {
  uint64_t* address;  ///< signal: the partner's count, or nullptr; wait: the count here; semaphore;
                      ///< Barrier; the word of a flag
  uint32_t index;     ///< channel, semaphore or barrier of the rank; flag_index()
  uint16_t slot;      ///< wait: where the block counts what it has taken, or kNoSlot; kCounted:
                      ///< counted_slot()
  uint16_t flags;     ///< OperandFlags
};
static_assert(sizeof(StepTarget) == 16);
inline constexpr uint16_t kNoSlot = 0xffff;

/// The slot of the `i`-th of `n` signals that a block, and no other, takes at one end in every
/// call.
inline constexpr uint32_t kMaxCounted = 254;
constexpr uint16_t counted_slot(uint32_t n, uint32_t i) {
  return static_cast<uint16_t>(n << 8 | i);
}
/// How many signals were taken there before a call.
MSCCLC_HD inline uint64_t taken_before(uint16_t counted_slot, uint64_t call) {
  return call * (counted_slot >> 8) + (counted_slot & 0xffu);
}

/// What few operands have; an array beside that of the operands, where any has.
struct StepExtra {
  uint32_t channel;    ///< the rank's channel it goes through, or kNoChannel
  uint32_t units;      ///< how many units of a pipeline a chunk of the buffer holds, 0 if all of it
  uint8_t* multicast;  ///< a switch's own address for all ranks (BaseAddress), or nullptr
  bool operator==(const StepExtra&) const = default;
};
static_assert(sizeof(StepExtra) == 16);

struct StepHeader {
  uint32_t steps, operands, targets;  ///< how many
  uint32_t extras;                    ///< as many as operands, or 0
  uint32_t align;                     ///< granule in which rounds are cut
  /// Plain operands of sums begin row_shift bytes after multiples of row_line, all alike: 128, 16,
  /// or else 4, the least that the executors for words take.
  uint32_t row_shift, row_line;
  uint32_t reserved;
};
static_assert(sizeof(StepHeader) == 32);

/// The part of a run that a block moves in one go.
struct StepStretch {
  const Step* step;
  const StepOperand* operands;  ///< of the move
  uint64_t skip, count;
  MSCCLC_HD uint64_t length() const { return step->length; }
};

/// The steps of a block, and the pipeline round.
struct Steps {
  using Op = Step;
  using Stretch = StepStretch;

  /// The program that begins at `header`.
  MSCCLC_HD explicit Steps(const StepHeader* header)
      : steps(reinterpret_cast<const Step*>(header + 1)),
        operands(reinterpret_cast<const StepOperand*>(steps + header->steps)),
        targets(reinterpret_cast<const StepTarget*>(operands + header->operands)),
        extras(header->extras == 0 ? nullptr
                                   : reinterpret_cast<const StepExtra*>(targets + header->targets)),
        align(header->align) {}

  const Step* steps;
  const StepOperand* operands;
  const StepTarget* targets;
  const StepExtra* extras;
  uint32_t align;
  uint64_t round_begin = 0;  ///< virtual bytes, in a pipeline
  uint64_t round_unit = 0;
};

MSCCLC_RUN inline DeviceLoop loop_of(const Steps&, const Step& step) {
  return {step.begin, step.end};
}

template <PacketFormat F, class Fn>
MSCCLC_RUN inline void for_each_stretch(const Steps& p, const Step& step, uint32_t i, Fn fn) {
  Range range = {step.begin, step.end};
  if ((step.flags & kInLoop) != 0) {
    range = range_in_round(step, p.round_begin, p.round_unit, p.align);
    if (range.begin >= range.end) return;
  }
  const uint32_t operands = uint32_t{step.dsts} + step.srcs;
  fn(StepStretch{&step, p.operands + step.first + i * operands, range.begin - step.run_begin,
                 range.end - range.begin});
}

MSCCLC_RUN inline uint32_t dsts_of(const StepStretch& s) { return s.step->dsts; }
MSCCLC_RUN inline uint32_t operands_of(const StepStretch& s) {
  return uint32_t{s.step->dsts} + s.step->srcs;
}
MSCCLC_RUN inline constexpr uint32_t members_of(const Steps&, const StepStretch&, uint32_t) {
  return 1;
}
MSCCLC_RUN inline uint32_t flags_of(const Steps&, const StepStretch& s, uint32_t k) {
  return s.operands[k].flags;
}
MSCCLC_RUN inline uint32_t channel_of(const Steps& p, const StepStretch& s, uint32_t k) {
  return p.extras[s.operands - p.operands + k].channel;
}

template <class M>
MSCCLC_RUN inline uint8_t* address_of(M& m, const Steps& p, const StepStretch& s, uint32_t k,
                                      uint32_t = 0) {
  const StepOperand operand = s.operands[k];
  uint8_t* begin = operand.address;
  if (operand.copies > 1) begin += m.call() % operand.copies * operand.stride * kCopyLine;
  if (p.extras == nullptr) return begin;
  const uint32_t units = p.extras[s.operands - p.operands + k].units;
  return units == 0 ? begin : begin - skipped_units(p.round_begin, p.round_unit, units);
}

/// Goes over the sources of a move in written order.
template <PacketFormat F, class M>
class StepSources {
 public:
  MSCCLC_RUN StepSources(M& m, const Steps& p, const StepStretch& s, const Piece& piece)
      : m_(m), p_(p), s_(s), piece_(piece), k_(s.step->dsts), end_(operands_of(s)) {}
  MSCCLC_RUN bool more() const { return k_ < end_; }
  MSCCLC_RUN Source next() {
    const bool packets = F != PacketFormat::none && (s_.operands[k_].flags & kPackets) != 0;
    const uint8_t* address = address_of(m_, p_, s_, k_++);
    return {packets ? address : address + piece_.offset, packets};
  }

 private:
  M& m_;
  const Steps& p_;
  const StepStretch& s_;
  const Piece& piece_;
  uint32_t k_, end_;
};
template <PacketFormat F, class M>
MSCCLC_RUN inline StepSources<F, M> sources_of(M& m, const Steps& p, const StepStretch& s,
                                               const Piece& piece) {
  return {m, p, s, piece};
}

/// How many moves of a step from `i` on a machine does at once.
template <class M>
MSCCLC_RUN inline uint32_t in_step(const Steps&, const Step& step, uint32_t i) {
  const uint32_t left = step.count - i;
  return left < M::kTogether ? left : M::kTogether;
}
MSCCLC_RUN inline StepStretch stretch_beside(const Steps&, const StepStretch& s,
                                             uint32_t moves_on) {
  return {s.step, s.operands + moves_on * operands_of(s), s.skip, s.count};
}

MSCCLC_RUN inline const StepTarget& target_of(const Steps& p, const Step& step, uint32_t i) {
  return p.targets[step.first + i];
}
MSCCLC_RUN inline uint32_t channel_of_target(const Steps& p, const Step& step, uint32_t i) {
  return target_of(p, step, i).index;
}

}  // namespace mscclc::device
