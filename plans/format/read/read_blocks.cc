// Thread blocks: tables, pipelines and ops that order. Ops that move data are in read_moves.cc.
#include "plans/format/read/read_blocks.h"

#include <fmt/format.h>

#include <algorithm>

#include "plans/format/wire/mscclpp_rules.h"

namespace mscclc {

// ---- names and shapes ----

OpShapes::OpShapes(const ReadState& state) : tape_(state.json.tape()), ours_(state.ours) {
  for (const OpInfo& row : op_table()) {
    KeySet required = {w_name}, optional;
    if (row.kind == OpKind::pipeline) {
      required = {w_name, w_iter_context, w_ops};
    } else if (row.moves_data()) {
      required = {w_name, w_src_buff, w_dst_buff};
      optional.add(w_tbg_info);
      if (row.channels != kNoChannel) {
        required.add(w_channel_type);
        optional.add(w_channel_ids);
      }
      if (row.has(kReduces)) optional.add(w_reduce_op);
    } else if (row.has(kMeets)) {
      required = {w_name, w_barrier_id, w_num_threadblocks};
    } else if (row.has(kReleases) || row.has(kAcquires)) {
      required = {w_name, w_semaphore_ids};
    } else if (row.has_flags()) {
      required = {w_name, w_flags};
    } else if (row.channels != kNoChannel) {
      required = {w_name, w_channel_ids, w_channel_type};
    }
    required_.push_back(required);
    optional_.push_back(optional);
  }
}

std::optional<OpName> OpShapes::find(Word name) {
  const auto known = by_word_.find(name);
  if (known != by_word_.end()) return known->second;
  return by_word_[name] = look_up(tape_.text(name));
}

std::optional<OpName> OpShapes::look_up(std::string_view name) const {
  bool relaxed = false;
  if (const auto kind = find_wire_op(name, relaxed)) return OpName{*kind, relaxed, false};
  if (name == "glre") return OpName{OpKind::switch_reduce, false, false};
  if (!ours_) return std::nullopt;
  if (const auto kind = find_long_name(name, relaxed)) return OpName{*kind, relaxed, true};
  return std::nullopt;
}

// ---- data channels ----

RefIndex::RefIndex(const ReadState& state) {
  for (StampedArray* array : {&of_block, &to_spare, &of_rank}) array->grow(state.ranks.size());
  uint64_t end = 0;
  for (const FlagArray& array : state.program.flags) flag_ends.push_back(end += array.count);
}

DataChannels::DataChannels(ReadState& state, uint32_t rank, RefIndex& index)
    : state_(state), rank_(rank), index_(index) {
  index_.of_rank.clear();
  const WireRank& wire = state.ranks[rank];
  for (size_t i = 0; i < wire.peers[0].size(); ++i) {
    const uint32_t peer = wire.peers[0][i];
    if (!index_.of_rank.has(peer)) index_.of_rank.set(peer, wire.channels[0][i]);
  }
  const NodeId rows = state.extra_node(rank, w_data_channels);
  if (rows == kNoNode) return;
  row_ = state.json.first(rows);
  rows_end_ = state.json.end(rows);
}

uint32_t DataChannels::peer_of(uint32_t channel) const {
  return state_.program.ranks[rank_].channels[channel].peer;
}

bool DataChannels::begin_block(uint32_t block, const std::vector<uint32_t>& table, NodeId ops) {
  index_.of_block.clear();
  index_.to_spare.clear();
  spare_.clear();
  bool several = false;
  for (const uint32_t channel : table) {
    const uint32_t peer = peer_of(channel);
    several |= index_.of_block.has(peer);
    if (!index_.of_block.has(peer)) index_.of_block.set(peer, channel);
  }
  if (state_.ours) return read_row(block, table);
  if (several) find_spare(table, ops);
  return true;
}

bool DataChannels::read_row(uint32_t block, const std::vector<uint32_t>& table) {
  if (row_ == rows_end_) return true;
  std::vector<uint32_t> row;
  if (!state_.json.numbers(row_, row)) return false;
  if (row.empty() || row[0] < block) return state_.fail(row_, "begins with no later thread block");
  if (row[0] != block) return true;
  for (size_t i = 1; i < row.size(); ++i) {
    if (row[i] >= table.size()) {
      return state_.fail(row_,
                         fmt::format("{} is not a channel (there are {})", row[i], table.size()));
    }
    index_.of_block.set(peer_of(table[row[i]]), table[row[i]]);
  }
  row_ = state_.json.next(row_);
  return true;
}

bool DataChannels::end() const {
  return row_ == rows_end_ || state_.fail(row_, "begins with no later thread block");
}

/// Where a plan of MSCCL++ has several channels to one peer in a block, those that no op names must
/// be there for the data: each is given to one ref.
void DataChannels::find_spare(const std::vector<uint32_t>& table, NodeId ops) {
  std::vector<bool> named(table.size());
  mark_named(ops, named);
  for (size_t i = 0; i < table.size(); ++i) {
    if (!named[i]) spare_.push_back(table[i]);
  }
  std::ranges::stable_sort(spare_, {}, [&](uint32_t channel) { return peer_of(channel); });
  for (uint32_t i = 0; i < spare_.size(); ++i) {
    const uint32_t peer = peer_of(spare_[i]);
    if (!index_.to_spare.has(peer)) index_.to_spare.set(peer, i);
  }
}

void DataChannels::mark_named(NodeId ops, std::vector<bool>& named) const {
  const JsonTape& tape = state_.json.tape();
  if (tape[ops].kind() != JsonType::array) return;
  // Nested ops and their lists lie between the array and what follows it.
  for (NodeId n = ops; n < tape[ops].next; ++n) {
    if (tape[n].kind() != JsonType::object) continue;
    NodeId ids = kNoNode;
    bool memory = false;
    for (NodeId m = n + 1; m != tape[n].next; m = tape[m].next) {
      if (tape[m].key == w_channel_ids && tape[m].kind() == JsonType::array) ids = m;
      memory |= tape[m].key == w_channel_type && tape[m].value == w_memory;
    }
    if (!memory || ids == kNoNode) continue;
    for (NodeId e = ids + 1; e != tape[ids].next; e = tape[e].next) {
      const JsonNode& id = tape[e];
      if (id.kind() == JsonType::number && id.value < named.size()) named[id.value] = true;
    }
  }
}

uint32_t DataChannels::take(uint32_t peer) {
  if (index_.to_spare.has(peer)) {
    const uint32_t at = index_.to_spare[peer];
    if (at < spare_.size() && peer_of(spare_[at]) == peer) {
      index_.to_spare.set(peer, at + 1);
      return spare_[at];
    }
  }
  return index_.of_block.has(peer) ? index_.of_block[peer] : kNone;
}

uint32_t DataChannels::any(uint32_t peer) const {
  return index_.of_rank.has(peer) ? index_.of_rank[peer] : kNone;
}

// ---- blocks ----

BlockReader::BlockReader(ReadState& state, OpShapes& shapes, LoopTable& loops, RefIndex& index,
                         uint32_t rank)
    : state_(state),
      json_(state.json),
      shapes_(shapes),
      loops_(loops),
      index_(index),
      wire_(state.ranks[rank]),
      rank_(state.program.ranks[rank]),
      id_(rank),
      data_channels_(state, rank, index) {}

bool BlockReader::read() {
  const NodeId list = wire_.blocks;
  if (!json_.expect(list, JsonType::array)) return false;
  rank_.blocks = json_.count(list);
  uint32_t block = 0;
  for (NodeId b = json_.first(list); b != json_.end(list); b = json_.next(b)) {
    if (!read_block(b, block++)) return false;
  }
  return data_channels_.end() && finish_barriers();
}

bool BlockReader::read_block(NodeId node, uint32_t block) {
  Members m;
  uint32_t id = 0;
  if (!m.read(json_, node, {w_id, w_channels, w_ops}, {w_remote_buffer_refs})) return false;
  if (!json_.number(m[w_id], id)) return false;
  if (id != block) return json_.fail(m[w_id], fmt::format("is {}; ids are positions", id));
  for (auto& table : channels_) table.clear();
  for (auto& table : remotes_) table.clear();
  pipelines_ = 0;
  return read_channel_tables(m[w_channels]) &&
         (!m.has(w_remote_buffer_refs) || read_remote_tables(m[w_remote_buffer_refs])) &&
         data_channels_.begin_block(block, channels_[0], m[w_ops]) &&
         read_ops(m[w_ops], block, kNone);
}

bool BlockReader::read_channel_tables(NodeId list) {
  if (!json_.expect(list, JsonType::array)) return false;
  for (NodeId t = json_.first(list); t != json_.end(list); t = json_.next(t)) {
    Members m;
    ChannelKind kind{};
    if (!m.read(json_, t, {w_channel_type, w_channel_ids}, {w_buff})) return false;
    if (!read_kind(json_, m[w_channel_type], kind)) return false;
    const NodeId ids = m[w_channel_ids];
    if (!json_.expect(ids, JsonType::array)) return false;
    const bool at_switch = kind == ChannelKind::switch_;
    const size_t k = static_cast<size_t>(kind);
    const size_t count = at_switch ? wire_.switches.size() : wire_.channels[k].size();
    for (NodeId e = json_.first(ids); e != json_.end(ids); e = json_.next(e)) {
      uint32_t id = 0;
      if (!json_.number(e, id)) return false;
      if (id >= count) {
        return json_.fail(e, fmt::format("{} is not a channel (there are {})", id, count));
      }
      channels_[k].push_back(at_switch ? id : wire_.channels[k][id]);
    }
  }
  return true;
}

bool BlockReader::read_remote_tables(NodeId list) {
  if (!json_.expect(list, JsonType::array)) return false;
  for (NodeId t = json_.first(list); t != json_.end(list); t = json_.next(t)) {
    Members m;
    ChannelKind kind{};
    if (!m.read(json_, t, {w_access_channel_type, w_remote_buffer_ids})) return false;
    if (!read_kind(json_, m[w_access_channel_type], kind)) return false;
    if (kind == ChannelKind::switch_) {
      return json_.fail(m[w_access_channel_type],
                        "a remote buffer is reached by 'memory' or 'port'");
    }
    const NodeId ids = m[w_remote_buffer_ids];
    if (!json_.expect(ids, JsonType::array)) return false;
    for (NodeId e = json_.first(ids); e != json_.end(ids); e = json_.next(e)) {
      uint32_t id = 0;
      if (!json_.number(e, id)) return false;
      if (id >= wire_.remotes.size()) {
        return json_.fail(
            e, fmt::format("{} is not a remote buffer (there are {})", id, wire_.remotes.size()));
      }
      if ((wire_.remotes[id].access & bit(kind)) == 0) {
        return json_.fail(e,
                          fmt::format("remote buffer {} is not reached by '{}'", id, name(kind)));
      }
      remotes_[static_cast<size_t>(kind)].push_back(id);
    }
  }
  return true;
}

bool BlockReader::read_ops(NodeId list, uint32_t block, uint32_t loop) {
  if (!json_.expect(list, JsonType::array)) return false;
  for (NodeId e = json_.first(list); e != json_.end(list); e = json_.next(e)) {
    if (!read_op(e, block, loop)) return false;
  }
  return true;
}

bool BlockReader::read_op(NodeId node, uint32_t block, uint32_t loop) {
  if (!json_.expect(node, JsonType::object)) return false;
  const JsonTape& tape = json_.tape();
  NodeId name_node = node + 1;
  while (name_node != tape[node].next && tape[name_node].key != w_name) {
    name_node = tape[name_node].next;
  }
  Word word = 0;
  if (name_node == tape[node].next) return json_.fail(node, "missing-key", "key 'name' is missing");
  if (!json_.word(name_node, word)) return false;
  const std::optional<OpName> name = shapes_.find(word);
  if (!name) {
    return json_.fail(name_node, "unknown-op", fmt::format("unknown op '{}'", tape.text(word)));
  }
  Members m;
  if (!m.read(json_, node, shapes_.required(name->kind), shapes_.optional(name->kind))) {
    return false;
  }
  if (name->kind == OpKind::pipeline) {
    if (loop != kNone) return json_.fail(node, "a pipeline inside a pipeline");
    return read_pipeline(m, node, block);
  }
  Op op;
  op.kind = name->kind;
  op.relaxed = name->relaxed;
  op.block = block;
  op.loop = loop;
  is_long_ = name->is_long;
  const bool moves = info(op.kind).moves_data();
  if (!(moves ? read_move(m, node, op) : read_control(m, node, op))) return false;
  rank_.ops.push_back(op);
  state_.op_nodes[id_].push_back(node);
  state_.op_is_long[id_].push_back(is_long_);
  return true;
}

bool BlockReader::read_pipeline(const Members& m, NodeId node, uint32_t block) {
  Members context;
  uint64_t unit = 0;
  uint32_t chunks = 0;
  if (!context.read(json_, m[w_iter_context], {w_unit_size, w_num_chunks})) return false;
  if (!json_.u64(context[w_unit_size], unit) || !json_.number(context[w_num_chunks], chunks)) {
    return false;
  }
  const uint32_t align = state_.program.launch.align;
  if (unit == 0 || unit % align != 0) {
    return json_.fail(context[w_unit_size], fmt::format("{} is not a multiple of {}", unit, align));
  }
  if (json_.expect(m[w_ops], JsonType::array) && json_.count(m[w_ops]) == 0) {
    return json_.fail(node, "a pipeline without ops");
  }
  const auto [it, added] = loops_.try_emplace({unit, chunks, pipelines_++},
                                              static_cast<uint32_t>(state_.program.loops.size()));
  if (added) state_.program.loops.push_back({unit, chunks});
  return read_ops(m[w_ops], block, it->second);
}

// ---- ops that order ----

bool BlockReader::read_control(const Members& m, NodeId node, Op& op) {
  const OpInfo& row = info(op.kind);
  if (row.has(kMeets)) return read_barrier(m, node, op);
  dsts_.clear();
  if (row.has(kReleases) || row.has(kAcquires)) {
    if (!read_semaphore_ids(m[w_semaphore_ids])) return false;
  } else if (row.has_flags()) {
    if (!read_flags(m[w_flags])) return false;
  } else if (row.channels != kNoChannel) {
    ChannelKind kind{};
    if (!read_kind_of(m, row, kind) || !read_channel_ids(m[w_channel_ids], kind)) return false;
  }
  if (dsts_.empty() && row.dsts.count > 0) return json_.fail(node, "names nothing to act on");
  state_.program.set_operands(op, dsts_, {});
  return true;
}

/// Fills dsts_ with the channels at these positions.
bool BlockReader::read_channel_ids(NodeId list, ChannelKind kind) {
  if (!json_.expect(list, JsonType::array)) return false;
  const std::vector<uint32_t>& table = channels_[static_cast<size_t>(kind)];
  for (NodeId e = json_.first(list); e != json_.end(list); e = json_.next(e)) {
    uint32_t position = 0;
    if (!json_.number(e, position)) return false;
    if (position >= table.size()) {
      return json_.fail(e,
                        fmt::format("{} is not a channel (there are {})", position, table.size()));
    }
    dsts_.push_back({table[position], kNone, 0, 0});
  }
  return dsts_.size() <= UINT16_MAX || json_.fail(list, "more than 65535 channels");
}

bool BlockReader::read_semaphore_ids(NodeId list) {
  if (!json_.expect(list, JsonType::array)) return false;
  for (NodeId e = json_.first(list); e != json_.end(list); e = json_.next(e)) {
    uint32_t id = 0;
    if (!json_.number(e, id)) return false;
    if (id >= rank_.semaphores.size()) {
      return json_.fail(
          e, fmt::format("{} is not a semaphore (there are {})", id, rank_.semaphores.size()));
    }
    dsts_.push_back({kNone, kNone, id, 0});
  }
  return dsts_.size() <= UINT16_MAX || json_.fail(list, "more than 65535 semaphores");
}

/// Flags of all arrays, numbered one array after the other.
bool BlockReader::read_flags(NodeId list) {
  if (!json_.expect(list, JsonType::array)) return false;
  for (NodeId e = json_.first(list); e != json_.end(list); e = json_.next(e)) {
    uint32_t flag = 0;
    if (!json_.number(e, flag)) return false;
    const auto end = std::ranges::upper_bound(index_.flag_ends, uint64_t{flag});
    if (end == index_.flag_ends.end()) return json_.fail(e, fmt::format("{} is not a flag", flag));
    const auto array = static_cast<uint32_t>(end - index_.flag_ends.begin());
    const uint64_t first = *end - state_.program.flags[array].count;
    dsts_.push_back({kNone, array, static_cast<uint32_t>(flag - first), 0});
  }
  return dsts_.size() <= UINT16_MAX || json_.fail(list, "more than 65535 flags");
}

bool BlockReader::read_barrier(const Members& m, NodeId node, Op& op) {
  Barrier barrier{0, op.block, static_cast<uint32_t>(rank_.ops.size()), 0, node};
  if (!json_.number(m[w_barrier_id], barrier.id)) return false;
  if (!json_.number(m[w_num_threadblocks], barrier.count, UINT16_MAX)) return false;
  barriers_.push_back(barrier);
  return true;
}

/// Finds out which blocks meet at each barrier: those that list it.
bool BlockReader::finish_barriers() {
  std::stable_sort(barriers_.begin(), barriers_.end(),
                   [](const Barrier& a, const Barrier& b) { return a.id < b.id; });
  std::map<uint32_t, NodeId> rows;
  if (!read_barrier_rows(rows)) return false;
  for (auto first = barriers_.begin(); first != barriers_.end();) {
    const auto last =
        std::find_if(first, barriers_.end(), [&](const Barrier& b) { return b.id != first->id; });
    dsts_.clear();  // ascending, since blocks were read in order
    for (auto b = first; b != last; ++b) {
      if (dsts_.empty() || dsts_.back().first != b->block) {
        dsts_.push_back({kNone, kNone, b->block, 0});
      }
    }
    Op shared;  // its operands serve all ops of the barrier
    state_.program.set_operands(shared, dsts_, {});
    for (auto b = first; b != last; ++b) {
      Op& op = rank_.ops[b->op];
      const auto row = rows.find(b->op);
      if (row != rows.end()) {
        if (!read_meeting(row->second, op)) return false;
        rows.erase(row);
        continue;
      }
      if (b->count != dsts_.size()) {
        return json_.fail(b->node,
                          fmt::format("'num_threadblocks' is {}, but {} thread blocks have "
                                      "barrier {}",
                                      b->count, dsts_.size(), b->id));
      }
      op.operands = shared.operands;
      op.dsts = shared.dsts;
    }
    first = last;
  }
  return rows.empty() || json_.fail(rows.begin()->second, "begins with no barrier");
}

/// Rows of the extra key: `[op, blocks…]` for barriers whose blocks do not follow from the
/// ops that list them.
bool BlockReader::read_barrier_rows(std::map<uint32_t, NodeId>& rows) {
  const NodeId list = state_.extra_node(id_, w_barriers);
  if (list == kNoNode) return true;
  if (!json_.expect(list, JsonType::array)) return false;
  for (NodeId e = json_.first(list); e != json_.end(list); e = json_.next(e)) {
    uint32_t op = 0;
    if (!json_.expect(e, JsonType::array)) return false;
    if (json_.count(e) < 2) return json_.fail(e, "expected an op and thread blocks");
    if (!json_.number(json_.first(e), op)) return false;
    if (!rows.try_emplace(op, e).second) return json_.fail(e, "the op appears twice");
  }
  return true;
}

bool BlockReader::read_meeting(NodeId row, Op& op) {
  std::vector<uint32_t> blocks;
  if (!json_.numbers(row, blocks)) return false;
  std::vector<Operand> operands;
  for (size_t i = 1; i < blocks.size(); ++i) operands.push_back({kNone, kNone, blocks[i], 0});
  if (operands.size() > UINT16_MAX) return json_.fail(row, "more than 65535 thread blocks");
  state_.program.set_operands(op, operands, {});
  return true;
}

bool read_blocks(ReadState& state) {
  const size_t ranks = state.ranks.size();
  state.op_nodes.resize(ranks);
  state.op_is_long.resize(ranks);
  OpShapes shapes(state);
  LoopTable loops;
  RefIndex index(state);
  for (uint32_t r = 0; r < ranks; ++r) {
    if (!BlockReader(state, shapes, loops, index, r).read()) return false;
  }
  return true;
}

}  // namespace mscclc
