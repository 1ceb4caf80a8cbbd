// The part of lowering that does not depend on the message size: ops become steps (runs_as.h),
// operands learn which base they start from, barriers get numbers, and a `pipeline` step is put
// before the body of each pipeline.
#include "executor/lower.h"

#include <algorithm>

#include "executor/runs_as.h"
#include "ir/program/applied.h"
#include "ir/program/flag_regions.h"
#include "ir/report/op_error.h"

namespace mscclc {
namespace {

using device::Base;
using device::DeviceOp;
using device::DeviceOperand;
using device::Move;
using device::StepKind;

RankProgram::MoveRows rows_of(const Program& program, const Op& op) {
  const Applied what = applied(program, op);
  RankProgram::MoveRows rows{what.first, what.function, static_cast<uint32_t>(what.results.size()),
                             has_rows(program, what)};
  for (size_t i = 0; i < what.results.size(); ++i) rows.values.push_back(what.result(i));
  for (size_t i = 0; i < what.params.size(); ++i) rows.values.push_back(what.param(i));
  return rows;
}

class RankLowering {
 public:
  RankLowering(const Program& program, uint32_t rank, RankProgram& out, Diagnostics& diagnostics,
               RowSteps rows)
      : program_(program),
        rank_id_(rank),
        rank_(program.ranks[rank]),
        out_(out),
        diagnostics_(diagnostics),
        rows_(rows) {}

  bool run();

 private:
  bool lower_op(uint32_t index);
  bool add_step(const Op& op, DeviceOp step);
  bool lower_apart(const Op& op, const DeviceOp& sum);
  bool add_part(const Op& op, DeviceOp step, std::span<const Operand> dsts,
                std::span<const Operand> srcs);
  void add_sync(DeviceOp step);
  bool sends_by_port(const Op& op) const;
  bool lower_moves(const Op& op, DeviceOp& lowered);
  void lower_targets(const Op& op, DeviceOp& lowered);
  void enter_loop(uint32_t loop, uint32_t index);
  bool add_move(const Op& op, DeviceOp& lowered, std::span<const Operand> dsts,
                std::span<const Operand> srcs);
  bool add_operand(const Op& op, DeviceOp& lowered, const Operand& operand, uint32_t count);
  uint32_t find_base(uint32_t owner, uint32_t buffer);
  uint32_t find_switch_bases(uint32_t channel, uint32_t buffer);
  uint32_t add_base(uint32_t owner, uint32_t buffer);
  uint32_t member_buffer(uint32_t member, uint32_t buffer) const;
  uint32_t find_barrier(const Op& op);
  bool fail(const Op& op, const char* code, const std::string& what);

  const Program& program_;
  const uint32_t rank_id_;
  const Rank& rank_;
  RankProgram& out_;
  Diagnostics& diagnostics_;
  const RowSteps rows_;
  uint32_t loop_ = kNone;     ///< loop whose body is being lowered
  uint32_t pipeline_op_ = 0;  ///< its op
  /// Bases by owner (ranks, then this rank's switch channels) as chains: first of each, next.
  std::vector<uint32_t> first_base_, next_base_;
};

bool RankLowering::fail(const Op& op, const char* code, const std::string& what) {
  op_error(diagnostics_, code, program_, rank_id_, op, what);
  return false;
}

uint32_t RankLowering::add_base(uint32_t owner, uint32_t buffer) {
  const auto index = static_cast<uint32_t>(out_.bases.size());
  const uint32_t copies = program_.ranks[owner].buffers[buffer].copies;
  out_.bases.push_back({owner, buffer, copies, 0, 0});
  next_base_.push_back(kNone);
  return index;
}

uint32_t RankLowering::find_base(uint32_t owner, uint32_t buffer) {
  uint32_t* link = &first_base_[owner];
  while (*link != kNone) {
    if (out_.bases[*link].buffer == buffer) return *link;
    link = &next_base_[*link];
  }
  const auto index = static_cast<uint32_t>(out_.bases.size());
  *link = index;  // before the chain's vector grows
  return add_base(owner, buffer);
}

// A switch's buffers are matched by name: members may have declared them in another order.
uint32_t RankLowering::member_buffer(uint32_t member, uint32_t buffer) const {
  const NameId name = rank_.buffers[buffer].name;
  const std::vector<Buffer>& theirs = program_.ranks[member].buffers;
  if (buffer < theirs.size() && theirs[buffer].name == name) return buffer;
  for (uint32_t i = 0; i < theirs.size(); ++i) {
    if (theirs[i].name == name) return i;
  }
  return kNone;
}

uint32_t RankLowering::find_switch_bases(uint32_t channel, uint32_t buffer) {
  uint32_t* link = &first_base_[program_.ranks.size() + channel];
  const std::span<const int64_t> group = program_.values(rank_.channels[channel].group);
  const uint32_t own = buffer;
  while (*link != kNone) {
    // The chain's first entry of a group is the bases' first; it remembers this rank's index.
    if (out_.bases[*link].reserved == own) return *link;
    link = &next_base_[*link];
  }
  *link = static_cast<uint32_t>(out_.bases.size());
  const uint32_t first = *link;
  for (const int64_t member : group) {
    const uint32_t theirs = member_buffer(static_cast<uint32_t>(member), buffer);
    if (theirs == kNone) return kNone;
    out_.bases[add_base(static_cast<uint32_t>(member), theirs)].reserved = own;
  }
  return first;
}

bool RankLowering::add_operand(const Op& op, DeviceOp& lowered, const Operand& operand,
                               uint32_t count) {
  if (operand.count != count) return fail(op, "operand-size", "operands of unequal chunk counts");
  const Buffer& buffer = program_.buffer_of(rank_id_, operand);
  DeviceOperand made{0, 1, operand.channel, 0};
  RankProgram::Chunks chunks{
      rank_id_, operand.first, buffer.kind, buffer.units * buffer.unit,
      rows::fixed_bytes(program_.form_of(buffer), program_.contract.columns)};
  made.flags |= buffer.units << device::kUnitsShift;
  const Channel* channel = operand.channel == kNone ? nullptr : &rank_.channels[operand.channel];
  if (channel != nullptr && channel->kind == ChannelKind::switch_) {
    made.base = find_switch_bases(operand.channel, operand.buffer);
    made.members = channel->group.count;
    if (made.base == kNone)
      return fail(op, "switch-buffer", "a rank of the switch lacks the buffer");
  } else {
    chunks.owner = program_.owner_of(rank_id_, operand);
    made.base = find_base(chunks.owner, operand.buffer);
    if (channel != nullptr && channel->kind == ChannelKind::port) made.flags |= device::kPort;
  }
  if (buffer.packets != PacketFormat::none) {
    made.flags |= device::kPackets;
    if (lowered.format != PacketFormat::none && lowered.format != buffer.packets) {
      return fail(op, "packet-format", "packet buffers of different formats");
    }
    lowered.format = buffer.packets;
  }
  out_.operands.push_back(made);
  out_.chunks.push_back(chunks);
  return true;
}

bool RankLowering::add_move(const Op& op, DeviceOp& lowered, std::span<const Operand> dsts,
                            std::span<const Operand> srcs) {
  Move move{};
  move.operands = static_cast<uint32_t>(out_.operands.size());
  move.dsts = static_cast<uint16_t>(dsts.size());
  move.srcs = static_cast<uint16_t>(srcs.size());
  const uint32_t count = dsts.front().count;
  for (const Operand& o : dsts) {
    if (!add_operand(op, lowered, o, count)) return false;
  }
  for (const Operand& o : srcs) {
    if (!add_operand(op, lowered, o, count)) return false;
  }
  const DeviceOperand* made = &out_.operands[move.operands];
  const bool port = (lowered.flags & device::kPosts) != 0;
  for (uint32_t k = 0; k < move.dsts; ++k) {
    if (((made[k].flags & device::kPort) != 0) != port) {
      return fail(op, "mixed-channels", "destinations through ports and others in one op");
    }
  }
  // What a port sends as packets must be packets already.
  if (port && (made->flags & device::kPackets) && !(made[move.dsts].flags & device::kPackets)) {
    return fail(op, "port-packets", "a port sends packets as they are; copy_packets makes them");
  }
  out_.moves.push_back(move);
  out_.move_chunks.push_back(count);
  out_.move_ops.push_back(static_cast<uint32_t>(out_.ops.size()));
  if (!program_.functions.empty()) {
    out_.move_rows.push_back(applies(op) ? rows_of(program_, op) : RankProgram::MoveRows());
  }
  ++lowered.count;
  return true;
}

bool RankLowering::lower_moves(const Op& op, DeviceOp& lowered) {
  lowered.first = static_cast<uint32_t>(out_.moves.size());
  const std::span<const Operand> dsts = program_.dsts(op), srcs = program_.srcs(op);
  if (dsts.empty() || srcs.empty()) return fail(op, "no-operands", "an op that moves nothing");
  const OpInfo& row = info(op.kind);
  if (!row.srcs.slot[0].pairwise) {
    if (!add_move(op, lowered, dsts, srcs)) return false;
  } else {
    if (dsts.size() != srcs.size()) return fail(op, "operand-count", "sources do not pair up");
    for (size_t i = 0; i < dsts.size(); ++i) {
      if (!add_move(op, lowered, dsts.subspan(i, 1), srcs.subspan(i, 1))) return false;
    }
  }
  const bool packets = lowered.format != PacketFormat::none;
  if (packets != (row.cost == CostClass::kPacket)) {
    return fail(op, "packet-buffer",
                packets ? "a packet buffer in an op that moves plain bytes"
                        : "a packet op without a packet buffer");
  }
  if (packets && op.loop != kNone) return fail(op, "packet-loop", "packets inside a pipeline");
  return true;
}

uint32_t RankLowering::find_barrier(const Op& op) {
  BarrierMembers members;
  for (const Operand& o : program_.dsts(op)) members.blocks.push_back(o.first);
  std::sort(members.blocks.begin(), members.blocks.end());
  for (uint32_t i = 0; i < out_.barriers.size(); ++i) {
    if (out_.barriers[i].blocks == members.blocks) return i;
  }
  out_.barriers.push_back(std::move(members));
  return static_cast<uint32_t>(out_.barriers.size() - 1);
}

void RankLowering::lower_targets(const Op& op, DeviceOp& lowered) {
  lowered.first = static_cast<uint32_t>(out_.targets.size());
  if (lowered.kind == StepKind::barrier) {
    out_.targets.push_back(find_barrier(op));
  } else {
    const bool flags = info(op.kind).has_flags();
    const bool semaphores = lowered.kind == StepKind::release || lowered.kind == StepKind::acquire;
    for (const Operand& o : program_.dsts(op)) {
      out_.targets.push_back(flags        ? flag_number(program_, o.buffer, o.first)
                             : semaphores ? o.first
                                          : o.channel);
    }
  }
  lowered.count = static_cast<uint32_t>(out_.targets.size()) - lowered.first;
}

void RankLowering::enter_loop(uint32_t loop, uint32_t index) {
  loop_ = loop;
  if (loop == kNone) return;
  DeviceOp op{};
  op.kind = StepKind::pipeline;
  op.first = static_cast<uint32_t>(out_.loops.size());
  op.source = index;
  pipeline_op_ = static_cast<uint32_t>(out_.ops.size());
  out_.ops.push_back(op);
  out_.loops.push_back({program_.loops[loop].unit, 0});
  out_.loop_chunks.push_back(program_.loops[loop].chunks);
}

bool RankLowering::sends_by_port(const Op& op) const {
  const std::span<const Operand> dsts = program_.dsts(op);
  return !info(op.kind).has(kWaits) && std::any_of(dsts.begin(), dsts.end(), [&](const Operand& o) {
    return o.channel != kNone && rank_.channels[o.channel].kind == ChannelKind::port;
  });
}

/// How machines add up the sources of an op, as OpFlags.
uint32_t summation_flag(const Op& op) {
  if (!adds_otherwise(op)) return 0;
  return op.summation == Summation::tree ? device::kTree : device::kExact;
}

/// The step of a sum that is handed to a row function before it is stored.
StepKind with_rows(StepKind kind) {
  return kind == StepKind::reduce_packets ? StepKind::reduce_packets_apply
         : kind == StepKind::reduce       ? StepKind::reduce_apply
                                          : kind;
}

bool RankLowering::lower_op(uint32_t index) {
  const Op& op = rank_.ops[index];
  if (op.loop != loop_) enter_loop(op.loop, index);
  DeviceOp lowered{};
  lowered.reduce = op.reduce;
  lowered.format = PacketFormat::none;
  lowered.flags = static_cast<uint8_t>((op.relaxed ? device::kRelaxed : 0) |
                                       (op.complete ? device::kComplete : 0) |
                                       (op.loop != kNone ? device::kInLoop : 0));
  const bool by_port = sends_by_port(op);
  if (by_port) lowered.flags |= device::kPosts;
  lowered.part = op.part;
  lowered.parts = op.parts;
  lowered.source = index;
  for (const StepKind kind : runs_as(op.kind, by_port)) {
    DeviceOp step = lowered;
    step.kind = applies(op) ? with_rows(kind) : kind;
    if (device::info(kind).adds) step.flags |= static_cast<uint8_t>(summation_flag(op));
    const bool apart = step.kind != kind && rows_ == RowSteps::apart;
    if (apart) step.kind = kind;
    if (apart ? !lower_apart(op, step) : !add_step(op, step)) return false;
  }
  return true;
}

/// RowSteps::apart. A block meets between what several of its threads do to a row.
bool RankLowering::lower_apart(const Op& op, const DeviceOp& sum) {
  const std::span<const Operand> dsts = program_.dsts(op), own = dsts.first(1);
  if (!add_part(op, sum, own, program_.srcs(op))) return false;
  DeviceOp rows = sum;
  rows.flags = 0;
  add_sync(rows);
  rows.kind = StepKind::apply;
  if (!add_part(op, rows, own, own)) return false;
  const std::span<const Operand> others = dsts.subspan(1);
  if (others.empty()) return true;
  add_sync(rows);
  const bool packets = program_.buffer_of(rank_id_, others[0]).packets != PacketFormat::none;
  rows.kind = packets ? StepKind::move_packets : StepKind::copy;
  rows.first = static_cast<uint32_t>(out_.moves.size());
  for (const Operand& o : others) {
    if (!add_move(op, rows, {&o, 1}, own)) return false;
  }
  out_.ops.push_back(rows);
  return true;
}

/// A step of one move.
bool RankLowering::add_part(const Op& op, DeviceOp step, std::span<const Operand> dsts,
                            std::span<const Operand> srcs) {
  step.first = static_cast<uint32_t>(out_.moves.size());
  if (!add_move(op, step, dsts, srcs)) return false;
  out_.ops.push_back(step);
  return true;
}

void RankLowering::add_sync(DeviceOp step) {
  step.kind = StepKind::sync;
  step.first = static_cast<uint32_t>(out_.targets.size());
  out_.ops.push_back(step);
}

bool RankLowering::add_step(const Op& op, DeviceOp step) {
  if (moves_data(step.kind)) {
    if (!lower_moves(op, step)) return false;
  } else {
    lower_targets(op, step);
  }
  out_.ops.push_back(step);
  if (loop_ != kNone) ++out_.ops[pipeline_op_].count;
  return true;
}

bool RankLowering::run() {
  out_ = {};
  out_.align = program_.launch.align;
  out_.ops.reserve(rank_.ops.size());
  first_base_.assign(program_.ranks.size() + rank_.channels.size(), kNone);
  for (const Buffer& b : rank_.buffers) out_.buffers.push_back({0, 0, b.copies, b.packets});
  uint32_t block = 0;
  out_.block_begin.push_back(0);
  for (uint32_t i = 0; i < rank_.ops.size(); ++i) {
    for (; block < rank_.ops[i].block; ++block) {
      out_.block_begin.push_back(static_cast<uint32_t>(out_.ops.size()));
      loop_ = kNone;
    }
    if (!lower_op(i)) return false;
  }
  for (; block < rank_.blocks; ++block) {
    out_.block_begin.push_back(static_cast<uint32_t>(out_.ops.size()));
  }
  return true;
}

bool check_split(const Program& program, Diagnostics& diagnostics) {
  if (program.split) return true;
  diagnostics.error("not-split", {}, "the program's ops are not yet placed in thread blocks");
  return false;
}

}  // namespace

device::RankView RankProgram::view() const {
  return {ops.data(),     moves.data(), operands.data(), runs.data(),
          offsets.data(), loops.data(), targets.data(),  align};
}

bool lower_rank(const Program& program, uint32_t rank, RankProgram& out, Diagnostics& diagnostics,
                RowSteps rows) {
  return check_split(program, diagnostics) &&
         RankLowering(program, rank, out, diagnostics, rows).run();
}

bool lower(const Program& program, DeviceProgram& out, Diagnostics& diagnostics, RowSteps rows) {
  out.ranks.resize(program.ranks.size());
  for (uint32_t r = 0; r < program.ranks.size(); ++r) {
    if (!lower_rank(program, r, out.ranks[r], diagnostics, rows)) return false;
  }
  return true;
}

}  // namespace mscclc
