#include "executor/block_programs.h"

#include <algorithm>
#include <cstring>

namespace mscclc {

using device::BaseAddress;
using device::BlockHeader;
using device::ChannelEnd;
using device::DeviceLoop;
using device::DeviceOp;
using device::DeviceOperand;
using device::Move;
using device::Run;

namespace {

constexpr uint64_t kMostBytes = uint64_t{1} << 31;

bool names_channels(OpKind kind) {
  return kind == OpKind::signal || kind == OpKind::wait || kind == OpKind::flush;
}

/// The kind that stands for all whose handlers (interpreter/handlers_*.h) do the same, if no
/// destination is behind a port or a switch.
OpKind handled_as(OpKind kind) {
  switch (kind) {
    case OpKind::put:
    case OpKind::get:
      return OpKind::copy;
    case OpKind::read_reduce:
    case OpKind::reduce_send:
    case OpKind::read_reduce_send:
      return OpKind::reduce;
    case OpKind::unpack_packets:
    case OpKind::put_packets:
    case OpKind::read_put_packets:
      return OpKind::copy_packets;
    case OpKind::reduce_send_packets:
    case OpKind::reduce_copy_packets:
    case OpKind::reduce_copy_send_packets:
      return OpKind::reduce_packets;
    default:
      return kind;
  }
}

uint32_t uses_of(PacketFormat format) {
  switch (format) {
    case PacketFormat::none:
      return 0;
    case PacketFormat::LL8:
    case PacketFormat::LL16:
      return device::kUsesLL;
    case PacketFormat::LL128:
      return device::kUsesLL128;
    case PacketFormat::sentinel:
      return device::kUsesSentinel;
  }
  return device::kUsesAll;
}

/// Lays an array behind what has been laid; `bytes` grows.
template <class T>
uint32_t lay(uint64_t& bytes, uint64_t count) {
  bytes = (bytes + alignof(T) - 1) / alignof(T) * alignof(T);
  const auto at = static_cast<uint32_t>(bytes);
  bytes += count * sizeof(T);
  return at;
}

template <class T>
T* begin_of(uint8_t* program, uint32_t at) {
  return reinterpret_cast<T*>(program + at);
}

}  // namespace

void BlockPrograms::Numbering::begin(size_t keys) {
  if (entries_.size() < keys) entries_.resize(keys);
  values_.clear();
  ++turn_;
}

uint32_t BlockPrograms::Numbering::number(size_t key, uint32_t value, uint32_t values) {
  Entry& entry = entries_[key];
  if (entry.turn != turn_) {
    entry = {turn_, static_cast<uint32_t>(values_.size())};
    for (uint32_t i = 0; i < values; ++i) values_.push_back(value + i);
  }
  return entry.number;
}

// What lowering and patching appended block by block lies together.
void BlockPrograms::find_stretches(uint32_t block, Block& out) const {
  const RankProgram& r = *rank_;
  out.ops.first = r.block_begin[block];
  out.ops.count = r.block_begin[block + 1] - r.block_begin[block];
  for (uint64_t i = 0; i < out.ops.count; ++i) {
    const DeviceOp& op = r.ops[out.ops.first + i];
    const bool loop = op.kind == OpKind::pipeline;
    Stretch& named = loop ? out.loops : info(op.kind).moves_data() ? out.moves : out.targets;
    if (named.count == 0) named.first = op.first;
    named.count = op.first - named.first + (loop ? 1 : op.count);
  }
  if (out.moves.count == 0) return;
  const Move& first = r.moves[out.moves.first];
  const Move& last = r.moves[out.moves.first + out.moves.count - 1];
  out.operands = {first.operands, last.operands + last.dsts + last.srcs - first.operands};
  out.runs = {first.runs, uint64_t{last.runs} + last.run_count - first.runs};
  if (out.runs.count == 0) return;
  out.offsets.first = r.runs[first.runs].offsets;
  const uint64_t end = r.runs[out.runs.first + out.runs.count - 1].offsets + last.dsts + last.srcs;
  out.offsets.count = end - out.offsets.first;
}

uint32_t BlockPrograms::base_of(const DeviceOperand& operand) {
  // The members of a switch follow one another; a base alone has another key.
  const size_t key = operand.base + (operand.members > 1 ? bases_.size() : 0);
  return own_bases_.number(key, operand.base, operand.members);
}

uint32_t BlockPrograms::channel_of(uint32_t channel) {
  return own_channels_.number(channel, channel, 1);
}

void BlockPrograms::note_uses(const DeviceOp& op) {
  if (info(op.kind).has(kReduces)) uses_ |= device::kUsesSums;
  if (op.flags & device::kPosts) uses_ |= device::kUsesProxy;
  uses_ |= uses_of(op.format);
}

void BlockPrograms::number_what_it_names(const Block& block) {
  const RankProgram& r = *rank_;
  own_bases_.begin(2 * bases_.size());
  own_channels_.begin(ends_.size());
  operands_.assign(
      r.operands.begin() + static_cast<ptrdiff_t>(block.operands.first),
      r.operands.begin() + static_cast<ptrdiff_t>(block.operands.first + block.operands.count));
  targets_.assign(
      r.targets.begin() + static_cast<ptrdiff_t>(block.targets.first),
      r.targets.begin() + static_cast<ptrdiff_t>(block.targets.first + block.targets.count));
  for (DeviceOperand& operand : operands_) {
    operand.base = base_of(operand);
    const bool port = (operand.flags & device::kPort) != 0;
    if (port) uses_ |= device::kUsesProxy;
    if (operand.members > 1) uses_ |= device::kUsesSwitch;
    operand.channel = port ? channel_of(operand.channel) : device::kNoChannel;
  }
  for (uint64_t i = 0; i < block.ops.count; ++i) {
    const DeviceOp& op = r.ops[block.ops.first + i];
    note_uses(op);
    if (!names_channels(op.kind)) continue;
    uint32_t* targets = targets_.data() + (op.first - block.targets.first);
    for (uint32_t t = 0; t < op.count; ++t) targets[t] = channel_of(targets[t]);
  }
}

/// Says where the arrays of a program go; returns its bytes.
uint64_t BlockPrograms::place(Block& block) const {
  uint64_t bytes = sizeof(BlockHeader);
  block.moves.at = lay<Move>(bytes, block.moves.count);
  block.runs.at = lay<Run>(bytes, block.runs.count);
  block.offsets.at = lay<uint64_t>(bytes, block.offsets.count);
  block.loops.at = lay<DeviceLoop>(bytes, block.loops.count);
  block.bases = lay<BaseAddress>(bytes, own_bases_.values().size());
  block.ends = lay<ChannelEnd>(bytes, own_channels_.values().size());
  block.operands.at = lay<DeviceOperand>(bytes, block.operands.count);
  block.ops.at = lay<DeviceOp>(bytes, block.ops.count);
  block.targets.at = lay<uint32_t>(bytes, block.targets.count);
  block.channels = lay<uint32_t>(bytes, own_channels_.values().size());
  return bytes;
}

void BlockPrograms::write(const Block& block, uint8_t* to) const {
  const RankProgram& r = *rank_;
  const BlockHeader header = {.ops = block.ops.at,
                              .moves = block.moves.at,
                              .operands = block.operands.at,
                              .runs = block.runs.at,
                              .offsets = block.offsets.at,
                              .loops = block.loops.at,
                              .targets = block.targets.at,
                              .bases = block.bases,
                              .ends = block.ends,
                              .channels = block.channels,
                              .op_count = static_cast<uint32_t>(block.ops.count),
                              .align = r.align};
  std::memcpy(to, &header, sizeof header);
  auto* ops = begin_of<DeviceOp>(to, block.ops.at);
  for (uint64_t i = 0; i < block.ops.count; ++i) {
    DeviceOp op = r.ops[block.ops.first + i];
    const bool moves = info(op.kind).moves_data();
    const Stretch& named = op.kind == OpKind::pipeline ? block.loops
                           : moves                     ? block.moves
                                                       : block.targets;
    op.first -= static_cast<uint32_t>(named.first);
    if (moves && !posts(op)) op.kind = handled_as(op.kind);
    ops[i] = op;
  }
  auto* moves = begin_of<Move>(to, block.moves.at);
  for (uint64_t i = 0; i < block.moves.count; ++i) {
    Move move = r.moves[block.moves.first + i];
    move.operands -= static_cast<uint32_t>(block.operands.first);
    move.runs -= static_cast<uint32_t>(block.runs.first);
    moves[i] = move;
  }
  auto* runs = begin_of<Run>(to, block.runs.at);
  for (uint64_t i = 0; i < block.runs.count; ++i) {
    Run run = r.runs[block.runs.first + i];
    run.offsets -= block.offsets.first;
    runs[i] = run;
  }
  const auto copy = [&](const auto& from, const Stretch& s) {
    if (s.count > 0) std::memcpy(to + s.at, from.data() + s.first, s.count * sizeof(from[0]));
  };
  copy(r.offsets, block.offsets);
  copy(r.loops, block.loops);
  copy(operands_, {0, operands_.size(), block.operands.at});
  copy(targets_, {0, targets_.size(), block.targets.at});
  auto* bases = begin_of<BaseAddress>(to, block.bases);
  for (const uint32_t base : own_bases_.values()) *bases++ = bases_[base];
  auto* ends = begin_of<ChannelEnd>(to, block.ends);
  auto* channels = begin_of<uint32_t>(to, block.channels);
  for (const uint32_t channel : own_channels_.values()) {
    *ends++ = ends_[channel];
    *channels++ = channel;
  }
}

/// Is it moved by the proxy?
bool BlockPrograms::posts(const DeviceOp& op) const {
  const Move& move = rank_->moves[op.first];
  const DeviceOperand& to = rank_->operands[move.operands];
  return (to.flags & device::kPort) != 0;
}

uint64_t BlockPrograms::most_bytes(const RankProgram& rank) {
  uint64_t longest = 0;
  const uint64_t blocks = rank.block_begin.size() - 1;
  for (uint64_t b = 0; b < blocks; ++b) {
    uint64_t bytes = sizeof(BlockHeader) + sizeof(Line);
    for (uint32_t i = rank.block_begin[b]; i < rank.block_begin[b + 1]; ++i) {
      const DeviceOp& op = rank.ops[i];
      bytes += sizeof(DeviceOp);
      if (op.kind == OpKind::pipeline) bytes += sizeof(DeviceLoop);
      if (op.kind == OpKind::pipeline) continue;
      if (!info(op.kind).moves_data()) {
        bytes += op.count * (2 * sizeof(uint32_t) + sizeof(ChannelEnd));
        continue;
      }
      for (uint32_t m = op.first; m < op.first + op.count; ++m) {
        const Move& move = rank.moves[m];
        const uint64_t operands = uint64_t{move.dsts} + move.srcs;
        bytes += sizeof(Move) + rank.move_chunks[m] * (sizeof(Run) + operands * sizeof(uint64_t));
        for (uint64_t k = 0; k < operands; ++k) {
          bytes += sizeof(DeviceOperand) + sizeof(ChannelEnd) + sizeof(uint32_t) +
                   rank.operands[move.operands + k].members * sizeof(BaseAddress);
        }
      }
    }
    longest = std::max(longest, bytes);
  }
  return blocks * ((longest + sizeof(Line) - 1) / sizeof(Line) * sizeof(Line));
}

bool BlockPrograms::pack(const RankProgram& rank, std::span<const BaseAddress> bases,
                         std::span<const ChannelEnd> ends, uint32_t least_stride) {
  rank_ = &rank;
  bases_ = bases;
  ends_ = ends;
  uses_ = 0;
  const auto blocks = static_cast<uint32_t>(rank.block_begin.size() - 1);
  uint64_t longest = std::max<uint64_t>(least_stride, sizeof(BlockHeader));
  for (const bool writes : {false, true}) {
    for (uint32_t b = 0; b < blocks; ++b) {
      Block block;
      find_stretches(b, block);
      number_what_it_names(block);
      longest = std::max(longest, place(block));
      if (writes) write(block, reinterpret_cast<uint8_t*>(lines_.data()) + uint64_t{b} * stride_);
    }
    if (longest >= kMostBytes) return false;
    stride_ = static_cast<uint32_t>((longest + sizeof(Line) - 1) / sizeof(Line) * sizeof(Line));
    lines_.resize(uint64_t{blocks} * stride_ / sizeof(Line));
  }
  return true;
}

}  // namespace mscclc
