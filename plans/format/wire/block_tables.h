// The tables of a plan: ops name channels and remote buffers by their position in a table of their
// thread block, which holds ids of the rank. Entries stand in the order of first use. Flat arrays
// with stamps instead of maps: nothing is cleared from block to block.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/program/program.h"
#include "plans/format/wire/wire_layout.h"

namespace mscclc {

/// A buffer at another rank that a rank addresses.
struct RemoteBuffer {
  uint32_t rank;
  WireType type;
  uint8_t access = 0;  ///< ChannelKinds bits: kMemory, kPort
};

/// An array whose entries are valid only while they carry the present stamp.
class StampedArray {
 public:
  void grow(size_t size) {
    if (entries_.size() < size) entries_.resize(size);
  }
  /// Makes all entries invalid.
  void clear() { ++stamp_; }
  bool has(size_t i) const { return entries_[i].stamp == stamp_; }
  uint32_t operator[](size_t i) const { return entries_[i].value; }
  void set(size_t i, uint32_t value) { entries_[i] = {stamp_, value}; }

 private:
  struct Stamped {
    uint64_t stamp = 0;
    uint32_t value = 0;
  };
  std::vector<Stamped> entries_;
  uint64_t stamp_ = 1;
};

class BlockTables {
 public:
  BlockTables(const Program& program, const WireLayout& layout);
  void begin_rank(uint32_t rank);
  void begin_block();

  /// Position of a memory or port channel in its table.
  uint32_t channel(uint32_t channel);
  /// Position of a switch (its id on the wire) in its table.
  uint32_t switch_id(uint32_t id);
  /// Position of a buffer of rank `owner` in the table of this access.
  uint32_t remote(uint32_t owner, WireType type, ChannelKind access);

  /// Ids of the rank in the block's table of this kind, by position.
  const std::vector<uint32_t>& channels(ChannelKind kind) const {
    return channels_[static_cast<size_t>(kind)];
  }
  const std::vector<uint32_t>& remotes(ChannelKind access) const {
    return remotes_[static_cast<size_t>(access)];
  }
  /// Kinds in the order in which their tables got their first entry.
  const std::vector<ChannelKind>& channel_kinds() const { return channel_kinds_; }
  const std::vector<ChannelKind>& remote_kinds() const { return remote_kinds_; }
  /// What the rank's blocks have addressed so far; its ids are positions in it.
  const std::vector<RemoteBuffer>& remote_buffers() const { return remote_buffers_; }

 private:
  uint32_t add(std::vector<uint32_t>& table, std::vector<ChannelKind>& kinds, ChannelKind kind,
               uint32_t id);

  const Program& program_;
  const WireLayout& layout_;
  uint32_t rank_ = 0;
  std::vector<uint32_t> channels_[3], remotes_[2];
  std::vector<ChannelKind> channel_kinds_, remote_kinds_;
  std::vector<RemoteBuffer> remote_buffers_;
  StampedArray channel_positions_;    ///< by channel of the rank
  StampedArray switch_positions_;     ///< by wire id
  StampedArray remote_ids_;           ///< by rank and type
  StampedArray remote_positions_[2];  ///< by id, per access
};

}  // namespace mscclc
