// Ops that move data: chunk refs, the channels they go through, parts and reductions.
#include <fmt/format.h>

#include <algorithm>

#include "plans/format/read/read_blocks.h"

namespace mscclc {
namespace {

/// The channel of a remote chunk that has not been found yet.
constexpr uint32_t kPending = kNone - 1;

const KeySet kLocalKeys = {w_type, w_index, w_size};
const KeySet kRemoteKeys = {w_buffer_id, w_index, w_size};
const KeySet kSwitchKeys = {w_switch_channel_id, w_index, w_size};

std::string counted(size_t n, std::string_view what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

}  // namespace

bool BlockReader::read_move(const Members& m, NodeId node, Op& op) {
  const OpInfo& row = info(op.kind);
  ChannelKind kind = ChannelKind::memory;
  if (row.channels != kNoChannel && !read_kind_of(m, row, kind)) return false;
  peers_.clear();
  if (!read_refs(m[w_dst_buff], row.dsts, kind, dsts_) ||
      !check_count(m[w_dst_buff], row.dsts, dsts_.size(), row) ||
      !read_refs(m[w_src_buff], row.srcs, kind, srcs_) ||
      !check_count(m[w_src_buff], row.srcs, srcs_.size(), row)) {
    return false;
  }
  if (!row.srcs.slot[0].pairwise || dsts_.size() == srcs_.size()) {
    if (!assign_channels(m, node, row, kind) || !read_part(m, op)) return false;
    if (row.has(kReduces) && !read_reduction(m, op)) return false;
    state_.program.set_operands(op, dsts_, srcs_);
    return true;
  }
  return json_.fail(node,
                    counted(dsts_.size(), "destination") + ", " + counted(srcs_.size(), "source"));
}

/// Reads `channel_type`, which must be one that the op takes.
bool BlockReader::read_kind_of(const Members& m, const OpInfo& row, ChannelKind& kind) {
  if (!read_kind(json_, m[w_channel_type], kind)) return false;
  return (bit(kind) & row.channels) != 0 ||
         json_.fail(m[w_channel_type],
                    fmt::format("'{}' cannot be combined with '{}'", name(kind), row.name));
}

bool BlockReader::check_count(NodeId list, const Slots& slots, size_t count,
                              const OpInfo& row) const {
  const size_t least = slots.count;
  const bool many = slots.slot[least - 1].many || slots.slot[0].pairwise;
  if (count > UINT16_MAX) return json_.fail(list, "more than 65535 refs");
  if (count == least || (many && count > least)) return true;
  return json_.fail(
      list, fmt::format("'{}' takes {}{} here, there {} {}", row.name, many ? "at least " : "",
                        counted(least, "ref"), count == 1 ? "is" : "are", count));
}

bool BlockReader::read_refs(NodeId list, const Slots& slots, ChannelKind kind,
                            std::vector<Operand>& out) {
  if (!json_.expect(list, JsonType::array)) return false;
  out.clear();
  for (NodeId e = json_.first(list); e != json_.end(list); e = json_.next(e)) {
    const Slot& slot = slots.of(out.size(), !out.empty());  // on the wire a plain source is first
    const bool packets = slot.packets || (slot.port_packets && kind == ChannelKind::port);
    Operand o;
    if (!read_ref(e, slot, packets, kind, o)) return false;
    const Operand& first = &out != &dsts_ && !dsts_.empty() ? dsts_[0] : out.empty() ? o : out[0];
    if (o.count != first.count) {
      return json_.fail(
          e, fmt::format("{}, but the op moves {}", counted(o.count, "chunk"), first.count));
    }
    out.push_back(o);
  }
  return true;
}

bool BlockReader::read_ref(NodeId node, const Slot& slot, bool packets, ChannelKind kind,
                           Operand& out) {
  Members m;
  const bool local = slot.kind == SlotKind::local, at_switch = slot.kind == SlotKind::switched;
  const KeySet keys = local ? kLocalKeys : at_switch ? kSwitchKeys : kRemoteKeys;
  if (!m.read(json_, node, keys, local ? KeySet{w_rank} : KeySet{})) return false;
  if (!json_.number(m[w_index], out.first) || !json_.number(m[w_size], out.count)) return false;
  if (out.count == 0) return json_.fail(m[w_size], "an empty range of chunks");
  if (local) return read_local(m, node, packets, out);
  return at_switch ? read_switched(m, node, packets, out)
                   : read_remote(m, node, packets, kind, out);
}

bool BlockReader::check_range(NodeId node, const Operand& o, uint32_t chunks) const {
  const uint64_t end = uint64_t{o.first} + o.count;
  return end <= chunks || json_.fail(node, fmt::format("chunks {}..{} of a buffer that has {}",
                                                       o.first, end, chunks));
}

bool BlockReader::read_local(const Members& m, NodeId node, bool packets, Operand& out) {
  WireType type{};
  if (!read_type(json_, m[w_type], type)) return false;
  if (m.has(w_rank)) {
    uint32_t rank = 0;
    if (!json_.number(m[w_rank], rank)) return false;
    if (rank != id_) return json_.fail(m[w_rank], fmt::format("is {} on rank {}", rank, id_));
  }
  out.buffer = static_cast<uint32_t>(type);
  if (type == WireType::scratch && !state_.ours) {
    state_.uses.push_back({id_, out.first, out.count, packets, false, node});
  }
  return check_range(node, out, wire_.chunks[static_cast<size_t>(type)]);
}

bool BlockReader::read_remote(const Members& m, NodeId node, bool packets, ChannelKind kind,
                              Operand& out) {
  const std::vector<uint32_t>& table = remotes_[static_cast<size_t>(kind)];
  uint32_t position = 0;
  if (!json_.number(m[w_buffer_id], position)) return false;
  if (position >= table.size()) {
    return json_.fail(m[w_buffer_id], fmt::format("{} is not a remote buffer (there are {})",
                                                  position, table.size()));
  }
  const WireRank::Remote& remote = wire_.remotes[table[position]];
  peers_.push_back(remote.rank);
  out.channel = kPending;
  out.buffer = static_cast<uint32_t>(remote.type);
  if (remote.type == WireType::scratch && !state_.ours) {
    state_.uses.push_back({remote.rank, out.first, out.count, packets, !packets, node});
  }
  return check_range(node, out, state_.ranks[remote.rank].chunks[static_cast<size_t>(remote.type)]);
}

bool BlockReader::read_switched(const Members& m, NodeId node, bool packets, Operand& out) {
  const std::vector<uint32_t>& table = channels_[static_cast<size_t>(ChannelKind::switch_)];
  uint32_t position = 0;
  if (!json_.number(m[w_switch_channel_id], position)) return false;
  if (position >= table.size()) {
    return json_.fail(m[w_switch_channel_id],
                      fmt::format("{} is not a channel (there are {})", position, table.size()));
  }
  const WireRank::Switch& entry = wire_.switches[table[position]];
  out.channel = entry.channel;
  out.buffer = static_cast<uint32_t>(entry.type);
  if (entry.type == WireType::scratch && !state_.ours) {
    state_.uses.push_back({id_, out.first, out.count, packets, !packets, node});
  }
  return check_range(node, out, entry.chunks);
}

/// Finds the channel of each remote operand: the one listed, or the block's for data to that rank.
bool BlockReader::assign_channels(const Members& m, NodeId node, const OpInfo& row,
                                  ChannelKind kind) {
  const NodeId list = m[w_channel_ids];
  if (kind == ChannelKind::switch_ || row.channels == kNoChannel) {
    if (list == kNoNode) return true;
    std::vector<uint32_t> positions;  // older plans repeat the position of the refs
    const size_t count = channels_[static_cast<size_t>(kind)].size();
    if (!json_.numbers(list, positions)) return false;
    const bool right = std::ranges::all_of(positions, [&](uint32_t p) { return p < count; });
    return right || json_.fail(list, fmt::format("not channels (there are {})", count));
  }
  if (list != kNoNode) return assign_listed(list, kind);
  if (kind == ChannelKind::port)
    return json_.fail(node, "missing-key", "key 'channel_ids' is missing");
  // Sources first, as a writer enters them in the block's table.
  size_t next =
      peers_.size() - static_cast<size_t>(std::ranges::count(srcs_, kPending, &Operand::channel));
  for (Operand& o : srcs_) {
    if (o.channel == kPending && !assign_data_channel(node, peers_[next++], o)) return false;
  }
  next = 0;
  for (Operand& o : dsts_) {
    if (o.channel == kPending && !assign_data_channel(node, peers_[next++], o)) return false;
  }
  return true;
}

bool BlockReader::assign_data_channel(NodeId node, uint32_t peer, Operand& o) {
  o.channel = data_channels_.take(peer);
  if (o.channel != kNone) return true;
  // None in the block's table, which MSCCL++'s executor does not mind: any of the rank.
  o.channel = data_channels_.any(peer);
  return o.channel != kNone ||
         json_.fail(node, fmt::format("there is no memory channel to rank {}", peer));
}

/// Takes the channels from `channel_ids`, one for each remote chunk, destinations first.
bool BlockReader::assign_listed(NodeId list, ChannelKind kind) {
  const std::vector<uint32_t>& table = channels_[static_cast<size_t>(kind)];
  if (!json_.expect(list, JsonType::array)) return false;
  if (json_.count(list) != peers_.size()) {
    return json_.fail(list, fmt::format("{} for {}", counted(json_.count(list), "channel"),
                                        counted(peers_.size(), "remote chunk")));
  }
  NodeId e = json_.first(list);
  size_t next = 0;
  for (std::vector<Operand>* side : {&dsts_, &srcs_}) {
    for (Operand& o : *side) {
      if (o.channel != kPending) continue;
      uint32_t position = 0;
      if (!json_.number(e, position)) return false;
      if (position >= table.size()) {
        return json_.fail(
            e, fmt::format("{} is not a channel (there are {})", position, table.size()));
      }
      o.channel = table[position];
      const uint32_t peer = rank_.channels[o.channel].peer;
      if (peer != peers_[next]) {
        return json_.fail(
            e, fmt::format("leads to rank {}, but the chunk is on rank {}", peer, peers_[next]));
      }
      ++next;
      e = json_.next(e);
    }
  }
  return true;
}

/// Without a note to the contrary, a sum of our plans is what the call asks for, of a plan of
/// MSCCL++ a sum; other reductions are what they say.
bool BlockReader::read_reduction(const Members& m, Op& op) {
  op.reduce = state_.ours && !state_.program.foreign ? ReduceOp::call : ReduceOp::sum;
  const NodeId node = m[w_reduce_op];
  if (node == kNoNode) return true;
  std::string_view text;
  if (!json_.string(node, text)) return false;
  const std::optional<ReduceOp> found = find_reduce_op(text);
  const bool peer =
      !is_long_ && (text == "sum" || (!state_.ours && (text == "min" || text == "max")));
  if (is_long_ && text == name(ReduceOp::call)) {
    op.reduce = ReduceOp::call;
  } else if (is_long_ && found) {
    op.reduce = *found;
  } else if (!peer) {
    return json_.fail(node, fmt::format("'{}' is not a reduction here", text));
  } else if (text != "sum") {
    op.reduce = *found;
  }
  return true;
}

bool BlockReader::read_part(const Members& m, Op& op) {
  if (!m.has(w_tbg_info)) return true;
  Members part;
  if (!part.read(json_, m[w_tbg_info], {w_tb_id, w_tbg_size})) return false;
  if (!json_.number(part[w_tb_id], op.part, UINT16_MAX) ||
      !json_.number(part[w_tbg_size], op.parts, UINT16_MAX)) {
    return false;
  }
  return op.part < op.parts ||
         json_.fail(m[w_tbg_info], fmt::format("part {} of {}", op.part, op.parts));
}

}  // namespace mscclc
