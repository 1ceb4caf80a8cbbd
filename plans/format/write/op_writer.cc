// Blocks, tables, and ops that move data. Those that order are in op_writer_order.cc.
#include "plans/format/write/op_writer.h"

#include <algorithm>

#include "ir/program/access.h"

namespace mscclc {
namespace {

bool is_floating_sum(const OpInfo& row) { return row.srcs.count > 0 && row.srcs.slot[0].floating; }

/// True if a remote chunk's channel is named in the op: port ops, one by one, and get.
bool lists_channels(const Op& op, ChannelKind kind) {
  return kind == ChannelKind::port || op.kind == OpKind::get;
}

}  // namespace

OpWriter::OpWriter(const Program& program, const WireLayout& layout, const Target& target,
                   ProgramReport& report, JsonOut& out)
    : program_(program),
      layout_(layout),
      report_(report),
      json_(out),
      rules_(program, layout),
      limits_(program, target, report),
      tables_(program, layout),
      used_loops_(program.loops.size()) {
  for (const WireBuffer& buffer : layout.buffers) {
    buffer_faults_.push_back(rules_.judge_buffer(buffer));
  }
  first_to_peer_.grow(program.ranks.size());
  data_to_peer_.grow(program.ranks.size());
}

void OpWriter::write_blocks(uint32_t rank) {
  rank_ = rank;
  index_ = 0;
  limits_.check_channels(layout_, rank);
  last_switched_ = {};
  tables_.begin_rank(rank);
  putting_threads_.grow(program_.ranks[rank].channels.size());
  notes_.clear();
  meetings_.clear();
  const Rank& r = program_.ranks[rank];
  json_.open('[');
  auto op = r.ops.begin();
  for (uint32_t block = 0; block < r.blocks; ++block) {
    const auto first = op;
    while (op != r.ops.end() && op->block == block) ++op;
    json_.elements([&] { write_block(block, {first, op}); });
    if (report_.enough()) break;
  }
  note_barriers();
  json_.close(']');
}

void OpWriter::write_block(uint32_t block, std::span<const Op> ops) {
  tables_.begin_block();
  first_to_peer_.clear();
  data_to_peer_.clear();
  putting_threads_.clear();
  data_row_.assign(1, block);
  json_.open('{');
  json_.members("id", block, "ops", [&] { json_.open('['); });
  uint32_t loop = kNone;
  uint64_t pipelines = 0;
  for (const Op& op : ops) {
    if (op.loop != loop) {
      if (loop != kNone) close_pipeline();
      loop = op.loop;
      if (loop != kNone) open_pipeline(loop);
      if (loop != kNone) note_round_before(ops.subspan(&op - ops.data()));
      pipelines += loop != kNone;
    }
    json_.elements([&] { write_op(op); });
    ++index_;
  }
  if (loop != kNone) close_pipeline();
  json_.close(']');
  write_tables();
  json_.close('}');
  if (data_row_.size() > 1) notes_.data_channels.push_back(data_row_);
  if (ops.empty()) return;
  size_t channels = 0, remotes = 0;
  for (const ChannelKind kind : tables_.channel_kinds()) {
    channels = std::max(channels, tables_.channels(kind).size());
  }
  for (const ChannelKind kind : tables_.remote_kinds()) {
    remotes = std::max(remotes, tables_.remotes(kind).size());
  }
  limits_.check_block(rank_, ops.back(), ops.size() + pipelines, channels, remotes);
}

void OpWriter::open_pipeline(uint32_t loop) {
  used_loops_[loop] = true;
  const Loop& l = program_.loops[loop];
  json_.elements([&] { json_.open('{'); });
  json_.members(
      "name", "pipeline", "iter_context",
      [&] { json_.object("unit_size", l.unit, "num_chunks", l.chunks); }, "ops",
      [&] { json_.open('['); });
}

void OpWriter::close_pipeline() {
  json_.close(']');
  json_.close('}');
}

void OpWriter::write_tables() {
  const auto channels = [&](ChannelKind kind) {
    json_.object("channel_type", name(kind), "channel_ids",
                 [&] { json_.list(tables_.channels(kind)); });
  };
  const auto remotes = [&](ChannelKind kind) {
    json_.object("access_channel_type", name(kind), "remote_buffer_ids",
                 [&] { json_.list(tables_.remotes(kind)); });
  };
  json_.members(
      "channels", [&] { json_.list(tables_.channel_kinds(), channels); }, "remote_buffer_refs",
      [&] { json_.list(tables_.remote_kinds(), remotes); });
}

void OpWriter::write_op(const Op& op) {
  json_.open('{');
  if (info(op.kind).moves_data()) {
    write_move(op);
  } else {
    write_control(op);
  }
  json_.close('}');
}

/// Writes the op's name, after judging it, and checks it against the target.
bool OpWriter::begin_op(const Op& op, const OpFacts& facts) {
  const MscclppFault fault = rules_.judge(rank_, op, facts);
  const bool is_long = fault != MscclppFault::none;
  if (is_long) limits_.check_name(rank_, op, fault);
  limits_.check_op(rank_, op, facts);
  const OpInfo& row = info(op.kind);
  json_.members("name", is_long      ? std::string_view(long_name(op.kind, op.relaxed))
                        : op.relaxed ? row.relaxed
                                     : row.wire);
  return is_long;
}

void OpWriter::write_move(const Op& op) {
  OpFacts facts;
  facts.signals_early = note_port_threads(op);
  resolve(op, facts);
  const bool is_long = begin_op(op, facts);
  note_move(op, is_long);
  const std::span<const Ref> dsts(refs_.data(), op.dsts), srcs(refs_.data() + op.dsts, op.srcs);
  const bool plain_first = !is_long && is_floating_sum(info(op.kind));
  ranked_ = op.kind == OpKind::switch_broadcast || op.kind == OpKind::switch_broadcast_packets;
  json_.members("src_buff", [&] { write_refs(srcs, plain_first ? plain_ : 0); });
  ranked_ = false;
  json_.members("dst_buff", [&] { write_refs(dsts, 0); });
  write_move_tail(op, facts, is_long);
}

/// Fills refs_ and ids_ and gathers what the rules ask for. Sources come first in the tables, as
/// in MSCCL++'s own plans.
void OpWriter::resolve(const Op& op, OpFacts& facts) {
  refs_.resize(size_t{op.dsts} + op.srcs);
  ids_.clear();
  override_channels_ = false;
  const std::span<const Operand> dsts = program_.dsts(op), srcs = program_.srcs(op);
  for (size_t i = 0; i < srcs.size(); ++i) {
    refs_[dsts.size() + i] = srcs[i].channel == kNone ? resolve_local(srcs[i], facts, true)
                                                      : resolve_remote(op, srcs[i], facts);
  }
  for (size_t i = 0; i < dsts.size(); ++i) {
    refs_[i] = dsts[i].channel == kNone ? resolve_local(dsts[i], facts, false)
                                        : resolve_remote(op, dsts[i], facts);
  }
  facts.ids = static_cast<uint32_t>(ids_.size());
  if (op.kind == OpKind::get) compare_places(op, facts);
  if (is_floating_sum(info(op.kind))) find_plain_source(op, facts);
}

OpWriter::Ref OpWriter::resolve_local(const Operand& o, OpFacts& facts, bool source) {
  const size_t index = layout_.first_buffer[rank_] + o.buffer;
  const WireBuffer& buffer = layout_.buffers[index];
  const uint8_t bit = static_cast<uint8_t>(1u << static_cast<uint32_t>(buffer.type));
  facts.local |= bit;
  if (source) facts.local_sources |= bit;
  if (buffer_faults_[index] != MscclppFault::none) facts.buffer = buffer_faults_[index];
  return {static_cast<Form>(buffer.type), 0, buffer.offset + o.first, o.count};
}

OpWriter::Ref OpWriter::resolve_remote(const Op& op, const Operand& o, OpFacts& facts) {
  const Channel& c = channel(o.channel);
  const bool at_switch = c.kind == ChannelKind::switch_;
  const size_t index = layout_.first_buffer[at_switch ? rank_ : c.peer] + o.buffer;
  const WireBuffer& buffer = layout_.buffers[index];
  facts.remote |= static_cast<uint8_t>(1u << static_cast<uint32_t>(buffer.type));
  facts.channel = c.kind;
  facts.plain_remote_scratch |=
      buffer.type == WireType::scratch && buffer.packets == PacketFormat::none;
  if (buffer_faults_[index] != MscclppFault::none) facts.buffer = buffer_faults_[index];
  Ref ref{Form::remote, 0, buffer.offset + o.first, o.count};
  if (at_switch) {
    ref.form = Form::switched;
    ref.id = tables_.switch_id(layout_.switch_id(rank_, o.channel, buffer.type));
    facts.unmatched_switch |= !layout_.switch_matched[rank_][layout_.channel_id(rank_, o.channel)];
    facts.unaligned_switch |= !aligned_on_members(o);
    facts.channel_position = std::max(facts.channel_position, ref.id);
    return ref;
  }
  const uint32_t position = use_channel(o.channel);
  ref.id = tables_.remote(c.peer, buffer.type, c.kind);
  facts.channel_position = std::max(facts.channel_position, position);
  facts.buffer_position = std::max(facts.buffer_position, ref.id);
  if (lists_channels(op, c.kind)) {
    ids_.push_back(position);
  } else {
    choose_data_channel(o.channel, position);
  }
  return ref;
}

/// True if the buffer stands at the same place of scratch on all ranks of the switch.
bool OpWriter::aligned_on_members(const Operand& o) {
  if (o.channel == last_switched_.channel && o.buffer == last_switched_.buffer) {
    return last_aligned_;
  }
  last_switched_ = o;
  const Buffer& mine = program_.ranks[rank_].buffers[o.buffer];
  const uint32_t offset = layout_.buffer(rank_, o.buffer).offset;
  last_aligned_ = std::ranges::all_of(program_.values(channel(o.channel).group), [&](int64_t q) {
    const uint32_t member = static_cast<uint32_t>(q);
    const uint32_t theirs = member_buffer(program_, member, mine, o.buffer);
    return theirs != kNone && layout_.buffer(member, theirs).offset == offset;
  });
  return last_aligned_;
}

/// Position of a memory or port channel in the block's table.
uint32_t OpWriter::use_channel(uint32_t index) {
  const Channel& c = channel(index);
  if (c.kind == ChannelKind::memory && !first_to_peer_.has(c.peer)) {
    first_to_peer_.set(c.peer, index);
  }
  return tables_.channel(index);
}

/// The wire does not say which memory channel data goes through: a reader takes the first to the
/// peer in the block's table. Notes where that is wrong.
void OpWriter::choose_data_channel(uint32_t index, uint32_t position) {
  const uint32_t peer = channel(index).peer;
  if (!data_to_peer_.has(peer)) {
    data_to_peer_.set(peer, index);
    if (first_to_peer_[peer] != index) data_row_.push_back(position);
  } else if (data_to_peer_[peer] != index) {
    override_channels_ = true;
  }
}

/// A round of the pipeline that `ops` begins with follows another one.
void OpWriter::note_round_before(std::span<const Op> ops) {
  for (const Op& op : ops) {
    if (op.loop != ops.front().loop) return;
    note_port_threads(op);
  }
}

/// MSCCL++'s executor does what stands at position k of a port op with thread k, and only a sync
/// orders its threads. Notes which thread puts; true if the op signals what another one has put.
bool OpWriter::note_port_threads(const Op& op) {
  const OpInfo& row = info(op.kind);
  if (row.has(kSyncs)) putting_threads_.clear();
  const std::span<const Operand> ends = program_.dsts(op);
  bool early = false;
  for (uint32_t k = 0; k < ends.size(); ++k) {
    const uint32_t port = ends[k].channel;
    if (port == kNone || channel(port).kind != ChannelKind::port) continue;
    const bool other = putting_threads_.has(port) && putting_threads_[port] != k;
    early |= other && row.has(kSignals);
    if (row.moves_data()) putting_threads_.set(port, other ? kSeveralThreads : k);
  }
  return early;
}

void OpWriter::compare_places(const Op& op, OpFacts& facts) const {
  for (uint32_t i = 0; i < op.dsts; ++i) {
    facts.offsets_differ |= refs_[i].index != refs_[op.dsts + i].index;
  }
}

void OpWriter::find_plain_source(const Op& op, OpFacts& facts) {
  const std::span<const Operand> srcs = program_.srcs(op);
  plain_ = 0;
  while (plain_ + 1 < srcs.size() &&
         layout_.buffer(rank_, srcs[plain_].buffer).packets != PacketFormat::none) {
    ++plain_;
  }
  facts.plain_in_the_middle = plain_ > 0 && plain_ + 1 < srcs.size();
}

/// Notes what the op's own members do not say.
void OpWriter::note_move(const Op& op, bool is_long) {
  if (op.applied.count != 0) {
    const std::span<const int64_t> values = program_.values(op.applied);
    std::vector<int64_t>& row = notes_.applied.emplace_back(1, index_);
    row.insert(row.end(), values.begin(), values.end());
  }
  if (op.complete) notes_.complete.push_back(index_);
  if (op.summation != Summation::in_turn) {
    notes_.by_summation[static_cast<size_t>(op.summation)].push_back(index_);
  }
  if (override_channels_) {
    RankNotes::Row row = {index_};
    for (uint32_t i = 0; i < uint32_t{op.dsts} + op.srcs; ++i) {
      const uint32_t channel = program_.operands[op.operands + i].channel;
      if (channel != kNone) row.push_back(channel);
    }
    notes_.op_channels.push_back(std::move(row));
  }
  const OpInfo& row = info(op.kind);
  if (is_long || !row.has(kReduces)) return;
  const ReduceOp usual = program_.foreign ? ReduceOp::sum : ReduceOp::call;
  if (op.reduce != usual) notes_.reduction.push_back(index_);
  if (is_floating_sum(row) && (plain_ != 0) != program_.foreign) notes_.plain.push_back(index_);
}

/// Writes refs with the one at `first` in front of the others.
void OpWriter::write_refs(std::span<const Ref> refs, uint32_t first) {
  json_.open('[');
  if (first != 0) write_ref(refs[first]);
  for (size_t i = 0; i < refs.size(); ++i) {
    if (first == 0 || i != first) write_ref(refs[i]);
  }
  json_.close(']');
}

void OpWriter::write_ref(const Ref& ref) {
  json_.elements([&] {
    json_.open('{');
    // MSCCL++'s DSL writes the rank in two ops, and nothing reads it.
    if (ranked_) json_.members("rank", rank_);
    if (ref.form == Form::remote) {
      json_.members("buffer_id", ref.id);
    } else if (ref.form == Form::switched) {
      json_.members("switch_channel_id", ref.id);
    } else {
      json_.members("type", letter(static_cast<WireType>(ref.form)));
    }
    json_.members("index", ref.index, "size", ref.size);
    json_.close('}');
  });
}

void OpWriter::write_move_tail(const Op& op, const OpFacts& facts, bool is_long) {
  if (facts.remote != 0) write_channels(facts.channel);
  if (info(op.kind).has(kReduces)) {
    json_.members("reduce_op", name(is_long ? op.reduce : ReduceOp::sum));
  }
  if (op.parts != 0) {
    json_.members("tbg_info", [&] { json_.object("tb_id", op.part, "tbg_size", op.parts); });
  }
}

/// `channel_ids`, if there are any, and `channel_type`.
void OpWriter::write_channels(ChannelKind kind) {
  if (!ids_.empty()) json_.members("channel_ids", [&] { json_.list(ids_); });
  json_.members("channel_type", name(kind));
}

}  // namespace mscclc
