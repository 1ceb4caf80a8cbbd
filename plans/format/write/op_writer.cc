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
      out_(out),
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
  notes_.clear();
  meetings_.clear();
  const Rank& r = program_.ranks[rank];
  out_.text("[");
  auto op = r.ops.begin();
  for (uint32_t block = 0; block < r.blocks; ++block) {
    const auto first = op;
    while (op != r.ops.end() && op->block == block) ++op;
    if (block > 0) out_.text(",");
    write_block(block, {first, op});
    if (report_.enough()) break;
  }
  note_barriers();
  out_.text("]");
}

void OpWriter::write_block(uint32_t block, std::span<const Op> ops) {
  tables_.begin_block();
  first_to_peer_.clear();
  data_to_peer_.clear();
  data_row_.assign(1, block);
  out_.need(64);
  out_.literal("{\"id\":");
  out_.number(block);
  out_.literal(",\"ops\":[");
  uint32_t loop = kNone;
  uint64_t pipelines = 0;
  for (const Op& op : ops) {
    if (op.loop != loop) {
      if (loop != kNone) close_pipeline();
      loop = op.loop;
      if (loop != kNone) open_pipeline(loop);
      pipelines += loop != kNone;
    }
    write_op(op);
    ++index_;
  }
  if (loop != kNone) close_pipeline();
  if (!ops.empty()) out_.take_back();
  out_.need(16);
  out_.character(']');
  write_tables();
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
  out_.need(128);
  out_.literal("{\"name\":\"pipeline\",\"iter_context\":{\"unit_size\":");
  out_.number64(program_.loops[loop].unit);
  out_.literal(",\"num_chunks\":");
  out_.number(program_.loops[loop].chunks);
  out_.literal("},\"ops\":[");
}

void OpWriter::close_pipeline() {
  out_.take_back();  // the comma of the last op: a pipeline has one at least
  out_.need(8);
  out_.literal("]},");
}

void OpWriter::write_tables() {
  out_.text(",\"channels\":[");
  constexpr std::string_view kKeys[] = {"{\"channel_type\":\"memory\",\"channel_ids\":[",
                                        "{\"channel_type\":\"port\",\"channel_ids\":[",
                                        "{\"channel_type\":\"switch\",\"channel_ids\":["};
  for (const ChannelKind kind : tables_.channel_kinds()) {
    write_table(kKeys[static_cast<size_t>(kind)], tables_.channels(kind));
  }
  if (!tables_.channel_kinds().empty()) out_.take_back();
  out_.text("],\"remote_buffer_refs\":[");
  constexpr std::string_view kRefKeys[] = {
      "{\"access_channel_type\":\"memory\",\"remote_buffer_ids\":[",
      "{\"access_channel_type\":\"port\",\"remote_buffer_ids\":["};
  for (const ChannelKind kind : tables_.remote_kinds()) {
    write_table(kRefKeys[static_cast<size_t>(kind)], tables_.remotes(kind));
  }
  if (!tables_.remote_kinds().empty()) out_.take_back();
  out_.text("]}");
}

void OpWriter::write_table(std::string_view opening, const std::vector<uint32_t>& ids) {
  out_.text(opening);
  write_numbers(ids);
  out_.need(4);
  out_.literal("]},");
}

/// Numbers with commas between them; there is one at least.
void OpWriter::write_numbers(std::span<const uint32_t> numbers) {
  for (const uint32_t n : numbers) {
    out_.need(16);
    out_.number(n);
    out_.character(',');
  }
  out_.take_back();
}

void OpWriter::write_op(const Op& op) {
  if (info(op.kind).moves_data()) {
    write_move(op);
  } else {
    write_control(op);
  }
}

/// Writes the op's name, after judging it, and checks it against the target.
bool OpWriter::begin_op(const Op& op, const OpFacts& facts) {
  const PeerFault fault = rules_.judge(rank_, op, facts);
  const bool is_long = fault != PeerFault::none;
  if (is_long) limits_.check_name(rank_, op, fault);
  limits_.check_op(rank_, op, facts);
  out_.need(64);
  out_.literal("{\"name\":\"");
  if (is_long) {
    out_.word(long_name(op.kind, op.relaxed));
  } else {
    const OpInfo& row = info(op.kind);
    out_.word(op.relaxed ? row.relaxed : row.wire);
  }
  out_.character('"');
  return is_long;
}

void OpWriter::write_move(const Op& op) {
  OpFacts facts;
  resolve(op, facts);
  const bool is_long = begin_op(op, facts);
  note_move(op, is_long);
  const std::span<const Ref> dsts(refs_.data(), op.dsts), srcs(refs_.data() + op.dsts, op.srcs);
  const bool plain_first = !is_long && is_floating_sum(info(op.kind));
  ranked_ = op.kind == OpKind::switch_broadcast || op.kind == OpKind::switch_broadcast_packets;
  write_refs(",\"src_buff\":[", srcs, plain_first ? plain_ : 0);
  ranked_ = false;
  write_refs(",\"dst_buff\":[", dsts, 0);
  write_move_tail(op, facts, is_long);
}

/// Fills refs_ and ids_ and gathers what the rules ask for. Sources come first in the tables, as
/// in the peer's own plans.
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
  if (buffer_faults_[index] != PeerFault::none) facts.buffer = buffer_faults_[index];
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
  if (buffer_faults_[index] != PeerFault::none) facts.buffer = buffer_faults_[index];
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
void OpWriter::write_refs(std::string_view key, std::span<const Ref> refs, uint32_t first) {
  out_.need(128);
  out_.word(key);
  if (first != 0) write_ref(refs[first]);
  for (size_t i = 0; i < refs.size(); ++i) {
    if (first != 0 && i == first) continue;
    write_ref(refs[i]);
  }
  out_.take_back();
  out_.need(4);
  out_.character(']');
}

void OpWriter::write_ref(const Ref& ref) {
  out_.need(96);
  if (ranked_) return write_ranked_ref(ref);
  switch (ref.form) {
    case Form::input:
      out_.literal("{\"type\":\"i\",\"index\":");
      break;
    case Form::output:
      out_.literal("{\"type\":\"o\",\"index\":");
      break;
    case Form::scratch:
      out_.literal("{\"type\":\"s\",\"index\":");
      break;
    case Form::remote:
      out_.literal("{\"buffer_id\":");
      out_.number(ref.id);
      out_.literal(",\"index\":");
      break;
    case Form::switched:
      out_.literal("{\"switch_channel_id\":");
      out_.number(ref.id);
      out_.literal(",\"index\":");
      break;
  }
  out_.number(ref.index);
  out_.literal(",\"size\":");
  out_.number(ref.size);
  out_.literal("},");
}

/// A local ref with its rank, which MSCCL++'s DSL writes in two ops and nothing reads.
void OpWriter::write_ranked_ref(const Ref& ref) {
  out_.literal("{\"rank\":");
  out_.number(rank_);
  out_.literal(",\"type\":\"");
  out_.character("ios"[static_cast<size_t>(ref.form)]);
  out_.literal("\",\"index\":");
  out_.number(ref.index);
  out_.literal(",\"size\":");
  out_.number(ref.size);
  out_.literal("},");
}

void OpWriter::write_move_tail(const Op& op, const OpFacts& facts, bool is_long) {
  if (facts.remote != 0) write_channels(facts.channel);
  out_.need(128);
  if (info(op.kind).has(kReduces)) {
    out_.literal(",\"reduce_op\":\"");
    out_.word(is_long ? name(op.reduce) : name(ReduceOp::sum));
    out_.character('"');
  }
  if (op.parts != 0) {
    out_.literal(",\"tbg_info\":{\"tb_id\":");
    out_.number(op.part);
    out_.literal(",\"tbg_size\":");
    out_.number(op.parts);
    out_.character('}');
  }
  out_.literal("},");
}

/// `channel_ids`, if there are any, and `channel_type`.
void OpWriter::write_channels(ChannelKind kind) {
  if (!ids_.empty()) {
    out_.need(32);
    out_.literal(",\"channel_ids\":[");
    write_numbers(ids_);
    out_.need(1);
    out_.character(']');
  }
  constexpr std::string_view kTypes[] = {
      ",\"channel_type\":\"memory\"", ",\"channel_type\":\"port\"", ",\"channel_type\":\"switch\""};
  out_.need(32);
  out_.word(kTypes[static_cast<size_t>(kind)]);
}

}  // namespace mscclc
