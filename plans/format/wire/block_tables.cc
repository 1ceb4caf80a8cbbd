#include "plans/format/wire/block_tables.h"

namespace mscclc {

BlockTables::BlockTables(const Program& program, const WireLayout& layout)
    : program_(program), layout_(layout) {
  remote_ids_.grow(3 * program.ranks.size());
  for (StampedArray& positions : remote_positions_) positions.grow(3 * program.ranks.size());
}

void BlockTables::begin_rank(uint32_t rank) {
  rank_ = rank;
  remote_ids_.clear();
  remote_buffers_.clear();
  channel_positions_.grow(program_.ranks[rank].channels.size());
  switch_positions_.grow(layout_.switches[rank].size());
  begin_block();
}

void BlockTables::begin_block() {
  for (auto& table : channels_) table.clear();
  for (auto& table : remotes_) table.clear();
  channel_kinds_.clear();
  remote_kinds_.clear();
  channel_positions_.clear();
  switch_positions_.clear();
  for (StampedArray& positions : remote_positions_) positions.clear();
}

uint32_t BlockTables::add(std::vector<uint32_t>& table, std::vector<ChannelKind>& kinds,
                          ChannelKind kind, uint32_t id) {
  if (table.empty()) kinds.push_back(kind);
  table.push_back(id);
  return static_cast<uint32_t>(table.size() - 1);
}

uint32_t BlockTables::channel(uint32_t channel) {
  if (channel_positions_.has(channel)) return channel_positions_[channel];
  const ChannelKind kind = program_.ranks[rank_].channels[channel].kind;
  const uint32_t position = add(channels_[static_cast<size_t>(kind)], channel_kinds_, kind,
                                layout_.channel_id(rank_, channel));
  channel_positions_.set(channel, position);
  return position;
}

uint32_t BlockTables::switch_id(uint32_t id) {
  if (switch_positions_.has(id)) return switch_positions_[id];
  const ChannelKind kind = ChannelKind::switch_;
  const uint32_t position = add(channels_[static_cast<size_t>(kind)], channel_kinds_, kind, id);
  switch_positions_.set(id, position);
  return position;
}

uint32_t BlockTables::remote(uint32_t owner, WireType type, ChannelKind access) {
  const size_t key = 3 * size_t{owner} + static_cast<size_t>(type);
  if (!remote_ids_.has(key)) {
    remote_ids_.set(key, static_cast<uint32_t>(remote_buffers_.size()));
    remote_buffers_.push_back({owner, type, 0});
  }
  const uint32_t id = remote_ids_[key];
  remote_buffers_[id].access |= bit(access);
  StampedArray& positions = remote_positions_[static_cast<size_t>(access)];
  if (!positions.has(id)) {
    positions.set(id, add(remotes_[static_cast<size_t>(access)], remote_kinds_, access, id));
  }
  return positions[id];
}

}  // namespace mscclc
