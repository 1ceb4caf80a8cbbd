// Reads the thread blocks of one rank: their tables, then their ops. Not for use outside the
// reader.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "plans/format/read/read_state.h"
#include "plans/format/wire/block_tables.h"

namespace mscclc {

/// What a name in a plan means.
struct OpName {
  OpKind kind;
  bool relaxed, is_long;
};

/// Names of ops and the keys that go with each, looked up once per plan.
class OpShapes {
 public:
  explicit OpShapes(const ReadState& state);
  std::optional<OpName> find(Word name);
  KeySet required(OpKind kind) const { return required_[static_cast<size_t>(kind)]; }
  KeySet optional(OpKind kind) const { return optional_[static_cast<size_t>(kind)]; }

 private:
  std::optional<OpName> look_up(std::string_view name) const;

  const JsonTape& tape_;
  bool ours_;
  std::vector<KeySet> required_, optional_;        ///< by OpKind
  std::map<Word, std::optional<OpName>> by_word_;  ///< names met so far
};

/// Loops of a program: pipelines of one size at the same place of their blocks are one loop.
using LoopTable = std::map<std::tuple<uint64_t, uint32_t, uint32_t>, uint32_t>;

/// What refs are looked up by. All ranks share one, since clearing an array takes no time.
struct RefIndex {
  explicit RefIndex(const ReadState& state);

  // Memory channels by peer: of the block's table the first, of those to spare a position, of the
  // rank the first.
  StampedArray of_block, to_spare, of_rank;
  std::vector<uint64_t> flag_ends;  ///< by array: one more than the number of its last flag
};

/// The channel that data to a peer goes through, which memory ops do not name.
class DataChannels {
 public:
  DataChannels(ReadState& state, uint32_t rank, RefIndex& index);
  /// Prepares for a block with this table of memory channels.
  bool begin_block(uint32_t block, const std::vector<uint32_t>& table, NodeId ops);
  /// Whether all that the extra key says has been used.
  bool end() const;
  /// The block's channel to `peer`, or kNone.
  uint32_t take(uint32_t peer);
  /// The rank's first channel to `peer`, or kNone.
  uint32_t any(uint32_t peer) const;

 private:
  bool read_row(uint32_t block, const std::vector<uint32_t>& table);
  void find_spare(const std::vector<uint32_t>& table, NodeId ops);
  void mark_named(NodeId ops, std::vector<bool>& named) const;
  uint32_t peer_of(uint32_t channel) const;

  ReadState& state_;
  uint32_t rank_;
  RefIndex& index_;
  std::vector<uint32_t> spare_;  ///< of a plan of MSCCL++: those that no op of the block names,
                                 ///< by peer
  NodeId row_ = kNoNode, rows_end_ = kNoNode;  ///< the next row of `data_channels`
};

class BlockReader {
 public:
  BlockReader(ReadState& state, OpShapes& shapes, LoopTable& loops, RefIndex& index, uint32_t rank);
  bool read();

 private:
  struct Barrier {
    uint32_t id, block, op, count;
    NodeId node;
  };

  bool read_block(NodeId node, uint32_t block);
  bool read_channel_tables(NodeId list);
  bool read_remote_tables(NodeId list);
  bool read_ops(NodeId list, uint32_t block, uint32_t loop);
  bool read_op(NodeId node, uint32_t block, uint32_t loop);
  bool read_pipeline(const Members& m, NodeId node, uint32_t block);

  bool read_control(const Members& m, NodeId node, Op& op);
  bool read_channel_ids(NodeId list, ChannelKind kind);
  bool read_flags(NodeId list);
  bool read_semaphore_ids(NodeId list);
  bool read_barrier(const Members& m, NodeId node, Op& op);
  bool finish_barriers();
  bool read_meeting(NodeId row, Op& op);
  bool read_barrier_rows(std::map<uint32_t, NodeId>& rows);

  bool read_move(const Members& m, NodeId node, Op& op);
  bool read_kind_of(const Members& m, const OpInfo& row, ChannelKind& kind);
  bool read_refs(NodeId list, const Slots& slots, ChannelKind kind, std::vector<Operand>& out);
  bool read_ref(NodeId node, const Slot& slot, bool packets, ChannelKind kind, Operand& out);
  bool read_local(const Members& m, NodeId node, bool packets, Operand& out);
  bool read_remote(const Members& m, NodeId node, bool packets, ChannelKind kind, Operand& out);
  bool read_switched(const Members& m, NodeId node, bool packets, Operand& out);
  bool check_range(NodeId node, const Operand& o, uint32_t chunks) const;
  bool check_count(NodeId list, const Slots& slots, size_t count, const OpInfo& row) const;
  bool assign_channels(const Members& m, NodeId node, const OpInfo& row, ChannelKind kind);
  bool assign_listed(NodeId list, ChannelKind kind);
  bool assign_data_channel(NodeId node, uint32_t peer, Operand& o);
  bool read_reduction(const Members& m, Op& op);
  bool read_part(const Members& m, Op& op);

  ReadState& state_;
  const JsonReader& json_;
  OpShapes& shapes_;
  LoopTable& loops_;
  const RefIndex& index_;
  WireRank& wire_;
  Rank& rank_;
  uint32_t id_;
  DataChannels data_channels_;
  std::vector<uint32_t> channels_[3];  ///< the block's tables: IR channels; wire ids of switches
  std::vector<uint32_t> remotes_[2];   ///< the block's tables: remote buffers
  std::vector<Operand> dsts_, srcs_;
  std::vector<uint32_t> peers_;  ///< of remote operands, destinations first
  std::vector<Barrier> barriers_;
  uint32_t pipelines_ = 0;  ///< of the block so far
  bool is_long_ = false;
};

}  // namespace mscclc
