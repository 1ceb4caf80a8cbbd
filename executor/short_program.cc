#include "executor/short_program.h"

#include <algorithm>
#include <limits>

#include "ir/support/precondition.h"

namespace mscclc {

using device::LaunchPlan;
using device::ShortHead;
using device::ShortOperand;
using device::ShortProgram;
using device::ShortStep;
using device::ShortTarget;
using device::Step;
using device::StepHeader;
using device::StepKind;
using device::StepOperand;
using device::Steps;

namespace {

constexpr uint64_t kMax = std::numeric_limits<uint32_t>::max();

/// The one format of a launch that has nothing but packets, and sums of them; else none.
PacketFormat only_format(uint32_t uses) {
  const uint32_t formats = uses & ~uint32_t{device::kUsesSums};
  for (const PacketFormatInfo& row : packet_formats()) {
    if (formats == device::uses_of(row.format)) return row.format;
  }
  return PacketFormat::none;
}

/// What the programs of a launch say of block `b`.
const StepHeader* program_of(const LaunchPlan& launch, uint32_t b) {
  return reinterpret_cast<const StepHeader*>(launch.programs + uint64_t{b} * launch.program_bytes);
}

bool is_short(const StepHeader& header) {
  return header.steps > 0 && header.steps <= device::kShortSteps && header.targets == 0 &&
         header.extras == 0;
}

bool is_short(const Step& step) {
  if ((step.flags & (device::kInLoop | device::kPosts)) != 0) return false;
  if (step.end - step.run_begin > device::kMaxShort || step.length > kMax) return false;
  if (step.dsts == 0 || step.dsts > device::kShortOperands) return false;
  if (step.kind == StepKind::reduce_packets) {
    return step.count == 1 && step.srcs > 0 && step.srcs <= device::kShortOperands;
  }
  const bool pairs = step.dsts == 1 && step.count <= device::kShortOperands;
  return step.kind == StepKind::move_packets && step.srcs == 1 && (step.count == 1 || pairs);
}

ShortOperand short_operand(const StepOperand& operand) {
  return {.address = operand.address,
          .apart = 0,
          .stride = operand.copies == 2 ? operand.stride : 0,
          .shrink = 0};
}

/// Each address is for calls of odd and of even numbers.
bool has_two_copies_at_most(const Steps& program, const StepHeader& header) {
  return std::all_of(program.operands, program.operands + header.operands,
                     [](const StepOperand& operand) { return operand.copies <= 2; });
}

/// Plain sources are read before the number of the call is known: they must have one copy.
bool plain_sources_stay(const ShortStep& step) {
  for (uint32_t j = 0; j < step.head.srcs; ++j) {
    if ((step.head.from_packets >> j & 1) == 0 && step.operands[j].stride != 0) return false;
  }
  return true;
}

/// As if the block were the only one. Destinations begin at operand `side`. `reduce`: the call's.
ShortStep short_step(const Steps& program, const Step& step, uint32_t side, ReduceOp reduce) {
  ShortStep made{};
  ShortHead& head = made.head;
  head.source = step.source;
  head.adds = step.kind == StepKind::reduce_packets ? 1 : 0;
  const bool complete = (step.flags & device::kComplete) != 0;
  head.averages = reduce == ReduceOp::avg && step.reduce == ReduceOp::call && complete ? 1 : 0;
  head.frees_next = (step.flags & device::kFreesNext) != 0 ? 1 : 0;
  head.pairs = step.count > 1 ? 1 : 0;
  made.range = {static_cast<uint32_t>(step.begin - step.run_begin),
                static_cast<uint32_t>(step.end - step.run_begin),
                static_cast<uint32_t>(step.length), 0};
  made.late = made.range;
  const StepOperand* operand = program.operands + step.first;
  const auto add = [&](ShortOperand* operands, uint8_t& count, uint8_t& packets) {
    if ((operand->flags & device::kPackets) != 0) packets |= static_cast<uint8_t>(1u << count);
    operands[count++] = short_operand(*operand++);
  };
  for (uint32_t i = 0; i < step.count; ++i) {
    for (uint32_t k = 0; k < step.dsts; ++k) add(made.operands + side, head.dsts, head.to_packets);
    for (uint32_t k = 0; k < step.srcs; ++k) add(made.operands, head.srcs, head.from_packets);
  }
  return made;
}

/// Calls fn(operand of one, operand of the other) with all operands of two steps.
template <class Fn>
void for_each_pair(ShortStep& one, const ShortStep& other, Fn fn) {
  for (uint32_t i = 0; i < 2 * device::kShortOperands; ++i) fn(one.operands[i], other.operands[i]);
}

uint64_t bytes_between(const ShortOperand& from, const ShortOperand& to) {
  return reinterpret_cast<uint64_t>(to.address) - reinterpret_cast<uint64_t>(from.address);
}

/// What `made` says of a step of block `b`, as if that were the only one.
ShortStep in_block(const ShortStep& made, uint32_t turn, uint32_t b) {
  ShortStep own = made;
  own.head.source += b * made.head.source_apart;
  own.head.source_apart = 0;
  own.range = own.late = b < turn ? made.range : made.late;
  for_each_pair(own, made, [&](ShortOperand& to, const ShortOperand& from) {
    const uint64_t less = uint64_t{b > turn ? b - turn : 0} * from.shrink;
    to.address = reinterpret_cast<uint8_t*>(reinterpret_cast<uint64_t>(from.address) +
                                            b * from.apart - less);
    to.apart = 0;
    to.shrink = 0;
  });
  return own;
}

/// Adds what step `own` of block `b` says to a step that says what blocks before it do.
bool add_block(ShortStep& made, const ShortStep& own, uint32_t turn, uint32_t b) {
  if (b == 0) {
    made = own;
    return true;
  }
  if (b == 1) {
    made.head.source_apart = own.head.source - made.head.source;
    for_each_pair(made, own, [](ShortOperand& first, const ShortOperand& second) {
      first.apart = bytes_between(first, second);
    });
  }
  if (b == turn) made.late = own.range;
  bool known = true;
  if (b == turn + 1) {
    ShortStep before = in_block(made, turn, turn);
    for_each_pair(before, own, [](ShortOperand& first, const ShortOperand& second) {
      first.apart = bytes_between(first, second);
    });
    for_each_pair(made, before, [&](ShortOperand& to, const ShortOperand& apart) {
      const uint64_t less = to.apart - apart.apart;
      known &= less <= kMax;
      to.shrink = static_cast<uint32_t>(less);
    });
  }
  return known && own == in_block(made, turn, b);
}

/// The most that a step of block 0 has on one side. REQUIRES: is_short() of its header.
uint32_t most_operands(const LaunchPlan& launch) {
  precondition([&] { return is_short(*program_of(launch, 0)); });
  const StepHeader* header = program_of(launch, 0);
  const Steps program(header);
  uint32_t most = 0;
  for (uint32_t s = 0; s < header->steps; ++s) {
    const Step& step = program.steps[s];
    most = std::max({most, step.count * step.srcs, step.count * step.dsts});
  }
  return most;
}

/// The first of `blocks` whose first step moves less than that of block 0, or how many they are.
uint32_t find_turn(const LaunchPlan& launch, uint32_t blocks) {
  const uint64_t length = Steps(program_of(launch, 0)).steps->length;
  for (uint32_t b = 1; b < blocks; ++b) {
    const StepHeader* header = program_of(launch, b);
    if (header->steps != 0 && Steps(header).steps->length != length) return b;
  }
  return blocks;
}

/// Does a block do nothing but signal and wait, as a block of a short program may?
bool only_targets(const StepHeader& header) {
  if (header.steps == 0 || header.operands != 0 || header.targets > device::kShortTargets) {
    return false;
  }
  const Steps program(&header);
  bool waits = false;
  for (uint32_t s = 0; s < header.steps; ++s) {
    const Step& step = program.steps[s];
    if (step.kind != StepKind::signal && step.kind != StepKind::wait) return false;
    if ((step.flags & (device::kInLoop | device::kPosts)) != 0) return false;
    // What comes after a wait may depend on it.
    if (waits) return false;
    waits = step.kind == StepKind::wait;
    for (uint32_t i = 0; i < step.count; ++i) {
      const uint16_t flags = device::target_of(program, step, i).flags;
      if (waits && (flags & device::kCounted) == 0) return false;
    }
  }
  return true;
}

/// REQUIRES: only_targets().
void add_targets(const StepHeader& header, ShortProgram& made) {
  precondition([&] { return only_targets(header); });
  const Steps program(&header);
  for (uint32_t s = 0; s < header.steps; ++s) {
    const Step& step = program.steps[s];
    for (uint32_t i = 0; i < step.count; ++i) {
      const device::StepTarget& target = device::target_of(program, step, i);
      if (target.address == nullptr) continue;  // no rank waits for that signal
      made.target[made.targets++] = {
          .address = target.address,
          .index = target.index,
          .source = step.source,
          .slot = target.slot,
          .waits = step.kind == StepKind::wait ? uint8_t{1} : uint8_t{0},
          .relaxed = (step.flags & device::kRelaxed) != 0 ? uint8_t{1} : uint8_t{0},
          .reserved = 0};
    }
  }
}

}  // namespace

bool make_short(const LaunchPlan& launch, ShortProgram& made) {
  made.format = only_format(launch.uses);
  if (made.format == PacketFormat::none || launch.call_counts != 1 || launch.blocks == 0) {
    return false;
  }
  if (!is_short(*program_of(launch, 0))) return false;
  const StepHeader& last = *program_of(launch, launch.blocks - 1);
  made.targets = 0;
  made.blocks = launch.blocks;
  if (only_targets(last)) {
    --made.blocks;
    add_targets(last, made);
  }
  made.steps = program_of(launch, 0)->steps;
  made.turn = find_turn(launch, made.blocks);
  made.operands = most_operands(launch);
  const uint32_t side = device::short_side(made.operands);
  for (uint32_t b = 0; b < made.blocks; ++b) {
    const StepHeader* header = program_of(launch, b);
    if (!is_short(*header) || header->steps != made.steps) return false;
    const Steps program(header);
    if (!has_two_copies_at_most(program, *header)) return false;
    for (uint32_t s = 0; s < made.steps; ++s) {
      const Step& step = program.steps[s];
      if (!is_short(step) || step.count * std::max(step.srcs, step.dsts) > side) return false;
      const ShortStep own = short_step(program, step, side, launch.reduce);
      if (!plain_sources_stay(own)) return false;
      if (!add_block(made.step[s], own, made.turn, b)) return false;
    }
  }
  const ShortHead& first = made.step[0].head;
  made.puts = first.from_packets == 0 && first.adds == 0 ? 1 : 0;
  return true;
}

}  // namespace mscclc
