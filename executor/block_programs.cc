#include "executor/block_programs.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "executor/copies_beside.h"
#include "executor/interpreter/handlers_flags.h"
#include "ir/program/flag_regions.h"
#include "ir/program/signal_counts.h"
#include "ir/support/precondition.h"

namespace mscclc {

using device::DeviceOp;
using device::DeviceOperand;
using device::Move;
using device::Step;
using device::StepExtra;
using device::StepFamily;
using device::StepHeader;
using device::StepKind;
using device::StepOperand;
using device::StepTarget;
using device::Stretch;

namespace {

constexpr uint64_t kMaxBytes = uint64_t{1} << 31;
constexpr uint32_t kLine = 128;  ///< bytes that a GPU's memory moves at once
constexpr uint32_t kEven = 16;   ///< bytes that a thread moves at once ...
constexpr uint32_t kWord = 4;    ///< ... or, at other addresses, a few times
constexpr uint32_t kMaxOperands = 0xffff;
constexpr std::string_view kManyOperands = "an op would have more than 65535 operands";

template <class T>
uint8_t* put(uint8_t* to, const T* from, size_t count) {
  if (count > 0) std::memcpy(to, from, count * sizeof(T));
  return to + count * sizeof(T);
}

/// `base` and `count` elements on, worked out as a number: a plan that has none, or whose memory is
/// on another machine, has a null base, and nothing reads there.
template <class T>
T* moved(T* base, uint64_t count) {
  return reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(base) + count * sizeof(T));
}

}  // namespace

WaitSlots::WaitSlots(const RankProgram& rank) : slots_(rank.targets.size()) {
  struct End {
    Sole block;
    bool in_loop = false;
    uint32_t waits = 0, at = 0;  ///< in a call, and those met so far
    uint16_t slot = device::kNoSlot;
  };
  std::vector<End> ends;
  const auto for_each_wait = [&](auto fn) {
    for (uint32_t b = 0; b + 1 < rank.block_begin.size(); ++b) {
      for (uint32_t i = rank.block_begin[b]; i < rank.block_begin[b + 1]; ++i) {
        const DeviceOp& op = rank.ops[i];
        for (uint32_t t = 0; op.kind == StepKind::wait && t < op.count; ++t) {
          fn(b, op.first + t, (op.flags & device::kInLoop) != 0);
        }
      }
    }
  };
  for_each_wait([&](uint32_t block, uint32_t target, bool in_loop) {
    const uint32_t channel = rank.targets[target];
    if (ends.size() <= channel) ends.resize(channel + 1);
    End& end = ends[channel];
    end.block.add(block);
    end.in_loop |= in_loop;
    ++end.waits;
  });
  uint32_t block_at = kNone, next = 1;
  for_each_wait([&](uint32_t block, uint32_t target, bool) {
    if (block != block_at) next = 1;
    block_at = block;
    End& end = ends[rank.targets[target]];
    if (end.block.several()) return;
    if (!end.in_loop && end.waits <= device::kMaxCounted) {
      slots_[target] = {device::counted_slot(end.waits, end.at++), true};
      return;
    }
    if (end.slot == device::kNoSlot && next < device::kMaxCounts)
      end.slot = static_cast<uint16_t>(next++);
    slots_[target].slot = end.slot;
    per_block_ = std::max(per_block_, next);
  });
}

void BlockPrograms::require(bool holds, std::string_view else_refusal) {
  if (!holds && refusal_.empty()) refusal_ = else_refusal;
}

void BlockPrograms::note_uses(const DeviceOp& op) {
  const device::StepInfo& step = info(op.kind);
  if (step.adds) uses_ |= device::kUsesSums;
  if (step.family == StepFamily::rows) uses_ |= device::kUsesRows;
  if (step.family == StepFamily::switched) uses_ |= device::kUsesSwitch;
  if (step.family == StepFamily::flags) uses_ |= device::kUsesFlags;
  if (op.flags & device::kPosts) {
    uses_ |= device::kUsesProxy;
    if (op.format != PacketFormat::none) uses_ |= device::kUsesSentPackets;
  }
  uses_ |= device::uses_of(op.format);
  const bool usual = op.reduce == ReduceOp::call || op.reduce == ReduceOp::sum;
  if (step.adds && !usual) uses_ |= device::kUsesOtherSums;
  if ((op.flags & device::kTree) != 0 || adds_exactly(op)) uses_ |= device::kUsesTrees;
}

/// Plain data begins at this address, or at multiples of it.
void BlockPrograms::note_begin(uint64_t at) {
  if (at % kEven != 0) uses_ |= device::kUsesUneven;
  if (at % kWord != 0) uses_ |= device::kUsesOdd;
}

Step BlockPrograms::begin_step(const DeviceOp& op) const {
  Step step{};
  step.kind = op.kind;
  step.reduce = op.reduce;
  step.format = op.format;
  step.flags = op.flags;
  step.part = op.part;
  step.parts = op.parts;
  step.source = op.source;
  return step;
}

uint32_t BlockPrograms::members(const Move& move, uint32_t first, uint32_t count) const {
  uint32_t members = 0;
  for (uint32_t k = first; k < first + count; ++k) {
    members += rank_->operands[move.operands + k].members;
  }
  return members;
}

BlockPrograms::Alike BlockPrograms::alike_from(const DeviceOp& op, uint32_t i) const {
  const Move& first = rank_->moves[op.first + i];
  Alike out{i, 1, members(first, 0, first.dsts), members(first, first.dsts, first.srcs)};
  while (i + out.count < op.count) {
    const Move& move = rank_->moves[op.first + i + out.count];
    if (!move.like_last || members(move, 0, move.dsts) != out.dsts ||
        members(move, move.dsts, move.srcs) != out.srcs) {
      break;
    }
    ++out.count;
  }
  return out;
}

void BlockPrograms::add_operand(const Move& move, const Stretch& run, uint32_t k) {
  const DeviceOperand& operand = rank_->operands[move.operands + k];
  const uint64_t offset = rank_->offsets[run.offsets + k];
  const bool port = (operand.flags & device::kPort) != 0;
  const uint32_t units = operand.flags >> device::kUnitsShift;
  // A switch serves all ranks of the one operand on its side.
  const bool alone = (k < move.dsts ? move.dsts : move.srcs) == 1;
  uint8_t* multicast =
      operand.members > 1 && alone ? places_.bases[operand.base].multicast : nullptr;
  if (port) uses_ |= device::kUsesProxy;
  if (units != 0) uses_ |= device::kUsesUnits;
  blocks_.back().extras |= port || units != 0 || multicast != nullptr;
  for (uint32_t m = 0; m < operand.members; ++m) {
    const device::BaseAddress& base = places_.bases[operand.base + m];
    const uint64_t lines = base.copies > 1 ? base.copy_stride / device::kCopyLine : 0;
    require(lines * base.copies >> 32 == 0, "the copies of a buffer would have 512 GiB together");
    require(base.copies <= 0xffff, "a buffer would have more than 65535 copies");
    const bool packets = (operand.flags & device::kPackets) != 0;
    uint8_t* begin = moved(base.address, offset);
    if (!packets) note_begin(reinterpret_cast<uint64_t>(begin));
    const auto copies = static_cast<uint16_t>(std::max<uint64_t>(base.copies, 1));
    if (!std::has_single_bit(copies)) uses_ |= device::kUsesCopies;
    operands_.push_back(
        {begin, static_cast<uint32_t>(lines), copies, static_cast<uint16_t>(operand.flags)});
    extras_.push_back({port ? operand.channel : device::kNoChannel, units,
                       multicast == nullptr ? nullptr : multicast + offset});
  }
}

namespace {

/// `to`, `from`: flags of its first destination and of its first source.
StepPiece step_piece(const Step& step, uint32_t to, uint32_t from) {
  return {.kind = step.kind,
          .format = step.format,
          .flags = step.flags,
          .dsts = step.dsts,
          .srcs = step.srcs,
          .begin = step.begin - step.run_begin,
          .end = step.end - step.run_begin,
          .length = step.length,
          .to_packets = (to & device::kPackets) != 0,
          .from_packets = (from & device::kPackets) != 0};
}

}  // namespace

/// True if the last step is a copy that becomes one of the moves of this one.
bool BlockPrograms::takes_copy(const DeviceOp& op, const Step& step) const {
  if (rank_->keeps_steps()) return false;
  if (step.kind != StepKind::move_packets || steps_.size() == blocks_.back().steps) return false;
  const Move& move = rank_->moves[op.first];
  const DeviceOperand* operands = &rank_->operands[move.operands];
  return is_taken_by_next(step_piece(steps_.back(), 0, 0),
                          step_piece(step, operands[0].flags, operands[move.dsts].flags));
}

/// Where the last step of the block is a copy that becomes one of the moves of the one before it.
void BlockPrograms::take_copy_at_end() {
  if (rank_->keeps_steps() || steps_.size() < blocks_.back().steps + 2) return;
  const Step copy = steps_.back();
  Step& sends = steps_[steps_.size() - 2];
  if (copy.kind != StepKind::copy || sends.kind != StepKind::move_packets) return;
  const size_t at = blocks_.back().operands + copy.first;  // destination, source
  const size_t first = blocks_.back().operands + sends.first;
  const bool same_source = sends.count == 1 && operands_[at - 1] == operands_[at + 1] &&
                           extras_[at - 1] == extras_[at + 1] && sends.dsts < kMaxOperands;
  const StepPiece last =
      step_piece(sends, operands_[first].flags, operands_[first + sends.dsts].flags);
  if (!is_taken_by_last(step_piece(copy, 0, 0), last, same_source)) return;
  if (sends.dsts == 1) {
    ++sends.count;
  } else {
    std::swap(operands_[at - 1], operands_[at]);
    std::swap(extras_[at - 1], extras_[at]);
    operands_.pop_back();
    extras_.pop_back();
    ++sends.dsts;
  }
  sends.flags |= copy.flags & device::kFreesNext;
  steps_.pop_back();
  join_moves_of_one_source(steps_.back());
}

bool BlockPrograms::add_step(const DeviceOp& op, const Alike& moves, uint32_t r) {
  const Move& move = rank_->moves[op.first + moves.first];
  const Stretch& run = rank_->runs[move.runs + r];
  Step step = begin_step(op);
  step.begin = run.begin;
  step.end = run.begin + (op.format == PacketFormat::none ? run.length : run.size);
  if ((op.flags & device::kInLoop) == 0) {
    step.begin = std::max(step.begin, move.begin);
    step.end = std::min(step.end, move.end);
  }
  const bool moves_any = step.begin < step.end;
  if (!moves_any && !rank_->keeps_steps()) return false;
  if (!moves_any) step.begin = step.end = run.begin;
  note_begin(rank_->align);
  uint64_t ends = run.length;
  if (op.format == PacketFormat::none) {
    note_begin(step.begin | run.begin);
    ends |= step.end | move.end;
  }
  if (ends % kEven != 0) uses_ |= device::kUsesUneven;
  if (op.format != PacketFormat::none && run.size > device::kMaxShort) {
    uses_ |= device::kUsesLong;
  }
  step.count = moves.count;
  step.first = static_cast<uint32_t>(operands_.size() - blocks_.back().operands);
  step.dsts = static_cast<uint16_t>(moves.dsts);
  step.srcs = static_cast<uint16_t>(moves.srcs);
  require(moves.dsts <= kMaxOperands && moves.srcs <= kMaxOperands, kManyOperands);
  step.length = moves_any ? run.length : 0;
  step.run_begin = run.begin;
  step.move_end = move.end;
  if (takes_copy(op, step)) {
    step.first = steps_.back().first;
    step.count += steps_.back().count;
    steps_.pop_back();
  }
  if (info(step.kind).family == StepFamily::rows) settle_rows(op, step);
  steps_.push_back(step);
  if (step.kind == StepKind::apply) {
    add_row_values(op, run);
    return moves_any;
  }
  const size_t first = operands_.size();
  for (uint32_t i = moves.first; i < moves.first + moves.count; ++i) {
    const Move& each = rank_->moves[op.first + i];
    for (uint32_t k = 0; k < uint32_t{each.dsts} + each.srcs; ++k) {
      add_operand(each, rank_->runs[each.runs + r], k);
    }
  }
  if (step.kind == StepKind::reduce) note_rows(first);
  if (step.kind == StepKind::move_packets) join_moves_of_one_source(steps_.back());
  if (info(step.kind).family == StepFamily::rows) add_row_values(op, run);
  return moves_any;
}

/// Which row function a step has, and how many values. An `apply` has them for operands.
void BlockPrograms::settle_rows(const DeviceOp& op, Step& step) {
  const RankProgram::MoveRows& rows = rank_->move_rows[op.first];
  require(rows.values.size() <= kMaxOperands, kManyOperands);
  require(rows.function <= 0xffff, "the plan would have more than 65536 row functions");
  step.part = static_cast<uint16_t>(rows.function);
  step.parts = static_cast<uint16_t>(rows.values.size());
  if (step.kind != StepKind::apply) return;
  step.dsts = static_cast<uint16_t>(rows.results);
  step.srcs = static_cast<uint16_t>(rows.values.size() - rows.results);
}

/// What a row function's results and parameters are, each where the run's first row lies. What a
/// sum hands over lies nowhere, and what comes of it where the sum's operands say.
void BlockPrograms::add_row_values(const DeviceOp& op, const Stretch& run) {
  const Move& move = rank_->moves[op.first];
  const RankProgram::MoveRows& rows = rank_->move_rows[op.first];
  const uint64_t row = rank_->offsets[run.offsets + move.dsts + move.srcs] / rank_->align;
  for (uint32_t i = 0; i < rows.values.size(); ++i) {
    const RowValue& value = rows.values[i];
    if (!value.external && op.kind == StepKind::apply) {
      add_operand(move, run, i < rows.results ? value.index : move.dsts + value.index);
      continue;
    }
    if (!value.external) {
      add_plain_value(nullptr, device::kHanded);
      continue;
    }
    const Places::External& external = places_.externals[value.index];
    uint8_t* const at =
        external.row_bytes == 0
            ? external.address
            : moved(external.address, (row - external.first_row) * external.row_bytes);
    add_plain_value(at, external.is_value ? uint32_t{device::kValue} : 0);
  }
}

void BlockPrograms::add_plain_value(uint8_t* at, uint32_t flags) {
  operands_.push_back({at, 0, 1, static_cast<uint16_t>(flags)});
  extras_.push_back({device::kNoChannel, 0, nullptr});
}

/// Moves that send the same data to several peers become one with as many destinations, which loads
/// it once. REQUIRES: the step is the last one, and each move has one source.
void BlockPrograms::join_moves_of_one_source(Step& step) {
  precondition(&step == &steps_.back());
  const uint32_t apart = step.dsts + 1u;
  const size_t begin = blocks_.back().operands + step.first;
  const auto source = [&](uint32_t i) { return begin + i * apart + step.dsts; };
  if (step.count < 2 || uint64_t{step.count} * step.dsts > kMaxOperands) return;
  const StepOperand from = operands_[source(0)];
  const StepExtra extra = extras_[source(0)];
  for (uint32_t i = 1; i < step.count; ++i) {
    if (operands_[source(i)] != from || extras_[source(i)] != extra) return;
  }
  size_t to = begin;
  for (uint32_t i = 0; i < step.count; ++i) {
    for (uint32_t k = 0; k < step.dsts; ++k, ++to) {
      operands_[to] = operands_[begin + i * apart + k];
      extras_[to] = extras_[begin + i * apart + k];
    }
  }
  operands_[to] = from;
  extras_[to] = extra;
  operands_.resize(to + 1);
  extras_.resize(to + 1);
  step.dsts = static_cast<uint16_t>(step.count * step.dsts);
  step.count = 1;
}

void BlockPrograms::note_rows(size_t first_operand) {
  Block& block = blocks_.back();
  for (size_t i = first_operand; i < operands_.size(); ++i) {
    const auto low = static_cast<uint32_t>(reinterpret_cast<uint64_t>(operands_[i].address));
    if (block.row_at == kNone) block.row_at = low % kLine;
    const uint32_t apart = (block.row_at ^ low) % kLine;
    if (apart != 0) block.row_line = std::min(block.row_line, apart % kEven == 0 ? kEven : kWord);
  }
}

void BlockPrograms::add_moves(const DeviceOp& op) {
  uint32_t steps = 0;  // also those that move nothing
  bool whole = true;
  for (uint32_t i = 0; i < op.count;) {
    const Alike moves = alike_from(op, i);
    const uint32_t runs = rank_->moves[op.first + i].run_count;
    bool any = false;
    for (uint32_t r = 0; r < runs; ++r) {
      const bool moves_any = add_step(op, moves, r);
      steps += moves_any || rank_->keeps_steps() ? 1 : 0;
      any |= moves_any;
    }
    whole &= any;
    i += moves.count;
  }
  settle_early_launch(op, steps, whole);
}

/// The next launch may begin after the last of an op's `count` steps that moves something, and only
/// if the block has polled what shows it that its peers have begun: `whole` says that no move is
/// empty.
void BlockPrograms::settle_early_launch(const DeviceOp& op, uint32_t count, bool whole) {
  Block& block = blocks_.back();
  block.blind |= !whole && (op.flags & device::kShowsPeers) != 0;
  bool is_freed = block.blind;
  for (uint32_t k = 0; k < count; ++k) {
    Step& step = steps_[steps_.size() - 1 - k];
    const bool may_free = !is_freed && (!moves_data(step.kind) || step.begin < step.end);
    if (!may_free) step.flags &= ~device::kFreesNext;
    is_freed |= may_free;
  }
}

StepTarget BlockPrograms::channel_target(uint32_t channel) const {
  const device::ChannelEnd& end = places_.ends[channel];
  const uint16_t flags = end.port != 0 ? uint16_t{device::kPort} : uint16_t{0};
  return {end.partner, channel, device::kNoSlot, flags};
}

// Without places, of programs that only their size is wanted of, there is no word.
StepTarget BlockPrograms::flag_target(uint32_t number) const {
  const auto next = std::ranges::upper_bound(places_.flags, number, {}, &Places::Flags::first);
  if (next == places_.flags.begin()) return {nullptr, number, device::kNoSlot, 0};
  const Places::Flags& array = next[-1];
  const uint64_t at = uint64_t{number - array.first} * array.bytes;
  const uint32_t flags = (array.bytes == 8 ? uint32_t{device::kWideFlag} : 0) |
                         (array.of_system ? uint32_t{device::kSystemFlag} : 0);
  static_assert(kMaxFlags <= 1u << device::kFlagNumberBits);
  static_assert(uint64_t{kMaxRaises} << device::kFlagNumberBits <= uint64_t{1} << 32);
  return {reinterpret_cast<uint64_t*>(moved(array.words, at)),
          device::flag_index(number, array.raises), device::kNoSlot, static_cast<uint16_t>(flags)};
}

StepTarget BlockPrograms::target_of(const DeviceOp& op, uint32_t target) const {
  const uint32_t index = rank_->targets[target];
  // A new kind of these families may have targets of its own.
  static_assert(device::kinds_of(StepFamily::target) == 4);
  static_assert(device::kinds_of(StepFamily::block) == 3);
  if (info(op.kind).family == StepFamily::flags) return flag_target(index);
  if (op.kind == StepKind::barrier) {
    auto* const barrier = reinterpret_cast<uint64_t*>(moved(places_.barriers, index));
    return {barrier, index, device::kNoSlot, 0};
  }
  if (op.kind == StepKind::release || op.kind == StepKind::acquire) {
    return {moved(places_.semaphores, index), index, device::kNoSlot, 0};
  }
  StepTarget made = channel_target(index);
  if (op.kind != StepKind::wait) return made;
  made.address = places_.ends[index].arrived;
  const WaitSlots::Slot slot = slots_->of_target(target);
  made.slot = slot.slot;
  if (slot.counted) made.flags |= device::kCounted;
  return made;
}

void BlockPrograms::add_targets(const DeviceOp& op) {
  Step step = begin_step(op);
  step.count = op.count;
  step.first = static_cast<uint32_t>(targets_.size() - blocks_.back().targets);
  for (uint32_t i = 0; i < op.count; ++i) {
    targets_.push_back(target_of(op, op.first + i));
    const bool posts = op.kind == StepKind::signal && (targets_.back().flags & device::kPort) != 0;
    if (!posts) continue;
    step.flags |= device::kPosts;  // a memory channel's too, where its peer takes no atomics
    uses_ |= device::kUsesProxy;
  }
  steps_.push_back(step);
  settle_early_launch(op, 1, true);
}

void BlockPrograms::add_op(uint32_t index) {
  const DeviceOp& op = rank_->ops[index];
  note_uses(op);
  if (moves_data(op.kind)) {
    add_moves(op);
  } else {
    add_targets(op);
  }
}

/// Is each put of one step followed by its channel's signal in the other?
bool BlockPrograms::signals_follow(const Step& puts, const Step& signals) const {
  constexpr uint8_t kBoth = device::kPosts | device::kInLoop;
  if (puts.kind != StepKind::copy || signals.kind != StepKind::signal) return false;
  if ((puts.flags & device::kPosts) == 0 || ((puts.flags ^ signals.flags) & kBoth) != 0) {
    return false;
  }
  if (puts.count * puts.dsts != signals.count) return false;
  const StepExtra* extra = &extras_[blocks_.back().operands + puts.first];
  const StepTarget* const first = &targets_[blocks_.back().targets + signals.first];
  const StepTarget* target = first;
  for (uint32_t i = 0; i < puts.count; ++i, extra += puts.srcs) {
    for (uint32_t k = 0; k < puts.dsts; ++k, ++target) {
      if (extra++->channel != target->index) return false;
      // The first signal of a channel shows all puts, so it may not leave before the last of them.
      const auto same = [&](const StepTarget& t) { return t.index == target->index; };
      if (std::any_of(first, target, same)) return false;
    }
  }
  return true;
}

/// One request takes a block half of the time of two, and the proxy sends both at once.
void BlockPrograms::join_puts_and_signals() {
  for (size_t s = blocks_.back().steps; s + 1 < steps_.size(); ++s) {
    if (!signals_follow(steps_[s], steps_[s + 1])) continue;
    steps_[s].flags |= device::kWithSignals;
  }
}

void BlockPrograms::add_block(uint32_t block) {
  blocks_.push_back({steps_.size(), operands_.size(), targets_.size(), false});
  for (uint32_t i = rank_->block_begin[block]; i < rank_->block_begin[block + 1]; ++i) {
    const DeviceOp& op = rank_->ops[i];
    if (op.kind != StepKind::pipeline) {
      add_op(i);
      continue;
    }
    const size_t loop = steps_.size();
    steps_.push_back(begin_step(op));
    for (uint32_t body = 0; body < op.count; ++body) add_op(++i);
    steps_[loop].count = static_cast<uint32_t>(steps_.size() - loop - 1);
    steps_[loop].begin = rank_->loops[op.first].unit;
    note_begin(steps_[loop].begin);
    steps_[loop].end = rank_->loops[op.first].rounds;
  }
  take_copy_at_end();
  join_puts_and_signals();
}

uint64_t BlockPrograms::bytes_of(size_t b) const {
  const Block &from = blocks_[b], &to = blocks_[b + 1];
  const uint64_t operands = to.operands - from.operands;
  return sizeof(StepHeader) + (to.steps - from.steps) * sizeof(Step) +
         operands * sizeof(StepOperand) + (to.targets - from.targets) * sizeof(StepTarget) +
         (from.extras ? operands * sizeof(StepExtra) : 0);
}

void BlockPrograms::write(size_t b, uint8_t* to) const {
  const Block &first = blocks_[b], &end = blocks_[b + 1];
  StepHeader header{};
  header.steps = static_cast<uint32_t>(end.steps - first.steps);
  header.operands = static_cast<uint32_t>(end.operands - first.operands);
  header.targets = static_cast<uint32_t>(end.targets - first.targets);
  header.extras = first.extras ? header.operands : 0;
  header.align = rank_->align;
  header.row_line = first.row_line;
  header.row_shift = first.row_at == kNone ? 0 : first.row_at % first.row_line;
  to = put(to, &header, 1);
  to = put(to, steps_.data() + first.steps, header.steps);
  to = put(to, operands_.data() + first.operands, header.operands);
  to = put(to, targets_.data() + first.targets, header.targets);
  put(to, extras_.data() + first.operands, header.extras);
}

uint64_t BlockPrograms::most_bytes(const RankProgram& rank) {
  uint64_t longest = 0;
  const uint64_t blocks = rank.block_begin.size() - 1;
  for (uint64_t b = 0; b < blocks; ++b) {
    uint64_t bytes = sizeof(StepHeader) + sizeof(Line);
    for (uint32_t i = rank.block_begin[b]; i < rank.block_begin[b + 1]; ++i) {
      const DeviceOp& op = rank.ops[i];
      if (!moves_data(op.kind)) {
        bytes += sizeof(Step) + uint64_t{op.count} * sizeof(StepTarget);
        continue;
      }
      for (uint32_t m = op.first; m < op.first + op.count; ++m) {
        const Move& move = rank.moves[m];
        uint64_t members = 0;
        for (uint32_t k = 0; k < uint32_t{move.dsts} + move.srcs; ++k) {
          members += rank.operands[move.operands + k].members;
        }
        if (!rank.move_rows.empty()) members += rank.move_rows[m].values.size();
        bytes += rank.move_chunks[m] *
                 (sizeof(Step) + members * (sizeof(StepOperand) + sizeof(StepExtra)));
      }
    }
    longest = std::max(longest, bytes);
  }
  return blocks * ((longest + sizeof(Line) - 1) / sizeof(Line) * sizeof(Line));
}

bool BlockPrograms::pack(const RankProgram& rank, const Places& places, const WaitSlots& slots,
                         uint32_t least_stride) {
  rank_ = &rank;
  slots_ = &slots;
  places_ = places;
  uses_ = 0;
  refusal_ = {};
  steps_.clear();
  operands_.clear();
  extras_.clear();
  targets_.clear();
  blocks_.clear();
  const auto blocks = static_cast<uint32_t>(rank.block_begin.size() - 1);
  for (uint32_t b = 0; b < blocks; ++b) add_block(b);
  blocks_.push_back({steps_.size(), operands_.size(), targets_.size(), false});
  uint64_t longest = std::max<uint64_t>(least_stride, sizeof(StepHeader));
  for (uint32_t b = 0; b < blocks; ++b) longest = std::max(longest, bytes_of(b));
  require(longest < kMaxBytes, "the program of a thread block would have 2 GiB");
  if (!refusal_.empty()) return false;
  stride_ = static_cast<uint32_t>((longest + sizeof(Line) - 1) / sizeof(Line) * sizeof(Line));
  lines_.assign(uint64_t{blocks} * stride_ / sizeof(Line), Line{});
  for (uint32_t b = 0; b < blocks; ++b) {
    write(b, reinterpret_cast<uint8_t*>(lines_.data()) + uint64_t{b} * stride_);
  }
  return true;
}

}  // namespace mscclc
