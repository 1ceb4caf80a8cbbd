// Writes the thread blocks of a rank: ops with their refs, and the tables that their numbers mean.
// One pass over the ops; all scratch memory is kept from op to op.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "ir/program/program.h"
#include "ir/report/program_report.h"
#include "plans/format/json/json_writer.h"
#include "plans/format/wire/block_tables.h"
#include "plans/format/wire/mscclpp_rules.h"
#include "plans/format/wire/wire_layout.h"
#include "plans/format/write/rank_notes.h"
#include "plans/format/write/target_limits.h"

namespace mscclc {

class OpWriter {
 public:
  OpWriter(const Program& program, const WireLayout& layout, const Target& target,
           ProgramReport& report, JsonOut& out);
  /// Writes the array of thread blocks. Afterwards remote_buffers() and notes() are the rank's.
  void write_blocks(uint32_t rank);

  const std::vector<RemoteBuffer>& remote_buffers() const { return tables_.remote_buffers(); }
  const RankNotes& notes() const { return notes_; }
  /// By pipeline: has an op in it been written?
  const std::vector<bool>& used_loops() const { return used_loops_; }

 private:
  /// A chunk ref as it will stand in JSON: its members, and which of the three forms.
  enum class Form : uint8_t { input, output, scratch, remote, switched };
  struct Ref {
    Form form;
    uint32_t id, index, size;
  };

  void write_block(uint32_t block, std::span<const Op> ops);
  void open_pipeline(uint32_t loop);
  void close_pipeline();
  void write_tables();
  void write_op(const Op& op);
  bool begin_op(const Op& op, const OpFacts& facts);
  void write_channels(ChannelKind kind);

  void write_move(const Op& op);
  void resolve(const Op& op, OpFacts& facts);
  Ref resolve_local(const Operand& o, OpFacts& facts, bool source);
  Ref resolve_remote(const Op& op, const Operand& o, OpFacts& facts);
  uint32_t use_channel(uint32_t index);
  void choose_data_channel(uint32_t index, uint32_t position);
  bool aligned_on_members(const Operand& o);
  bool note_port_threads(const Op& op);
  void note_round_before(std::span<const Op> ops);
  void compare_places(const Op& op, OpFacts& facts) const;
  void find_plain_source(const Op& op, OpFacts& facts);
  void note_move(const Op& op, bool is_long);
  void write_refs(std::span<const Ref> refs, uint32_t first);
  void write_ref(const Ref& ref);
  void write_move_tail(const Op& op, const OpFacts& facts, bool is_long);

  void write_control(const Op& op);
  void write_flag_op(const Op& op);
  void write_barrier(const Op& op);
  uint32_t barrier_id(const Op& op);
  void note_barriers();

  const Channel& channel(uint32_t index) const { return program_.ranks[rank_].channels[index]; }

  const Program& program_;
  const WireLayout& layout_;
  ProgramReport& report_;
  JsonWriter json_;
  MscclppRules rules_;
  TargetLimits limits_;
  BlockTables tables_;
  RankNotes notes_;
  std::vector<MscclppFault> buffer_faults_;  ///< as layout_.buffers
  std::vector<bool> used_loops_;

  uint32_t rank_ = 0;
  uint32_t index_ = 0;          ///< of the op among the rank's
  uint32_t plain_ = 0;          ///< of a packet sum: which source is the plain one
  std::vector<Ref> refs_;       ///< of the op: destinations, then sources
  std::vector<uint32_t> ids_;   ///< of the op: channel_ids or semaphore_ids
  StampedArray first_to_peer_;  ///< by peer: the first memory channel to it in the block's table
  StampedArray data_to_peer_;   ///< by peer: the channel of data to it in this block
  /// By port: at which position its puts since the last sync stand in their ops.
  StampedArray putting_threads_;
  static constexpr uint32_t kSeveralThreads = kNone;
  RankNotes::Row data_row_;
  bool override_channels_ = false;
  bool ranked_ = false;    ///< refs say their rank
  Operand last_switched_;  ///< the switch and buffer that aligned_on_members() judged last
  bool last_aligned_ = false;
  /// A barrier: the blocks that meet, the ops (by index) and blocks that have it so far, and ops
  /// that list the blocks in another order.
  struct Meeting {
    std::vector<uint32_t> blocks, ops, present, disordered;
  };
  std::vector<Meeting> meetings_;  ///< by barrier id
  std::vector<uint32_t> blocks_;   ///< of the barrier being written
};

}  // namespace mscclc
