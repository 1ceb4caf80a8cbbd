// Which bytes ops move: of which chunks, which pieces of them, how long those are, and whether the
// same threads of a block do.
#pragma once

#include <cstdint>

#include "ir/program/access.h"
#include "passes/prove/loops/loop_groups.h"
#include "passes/prove/memory/history.h"
#include "passes/prove/model/extent.h"
#include "passes/prove/model/system.h"
#include "passes/prove/processes/call_order.h"
#include "passes/prove/processes/thread_blocks.h"

namespace mscclc::proof {

class OpBytes {
 public:
  /// All of them must outlive it.
  OpBytes(const System& system, const LoopGroups& groups, Cuts& cuts, const CallOrder& calls)
      : system_(system), program_(system.program()), groups_(groups), cuts_(cuts), calls_(calls) {}

  static bool is_packet_op(const Op& op) { return info(op.kind).cost == CostClass::kPacket; }
  bool is_port(uint32_t rank, const Operand& o) const {
    return has_channel(rank, o, ChannelKind::port);
  }
  bool at_switch(uint32_t rank, const Operand& o) const {
    return has_channel(rank, o, ChannelKind::switch_);
  }
  const Buffer& buffer(const ChunkName& name) const {
    return program_.ranks[name.rank].buffers[name.buffer];
  }

  /// Calls each(chunk's name, its spot) for the `k`-th chunk of an operand: at a switch one of
  /// every member.
  template <class Each>
  void each_place(uint32_t rank, const Operand& o, uint32_t k, Each&& each) const;

  /// What the block's op touches of the `k`-th chunk of an operand, which is `name`.
  Extent extent_of(const ThreadBlock& block, const Op& op, const Operand& o, uint32_t k,
                   const ChunkName& name) const {
    return op.parts == 0 && op.loop == kNone ? Extent{} : piece_of(block, op, o, k, name);
  }
  /// Which round, and which piece of its bytes, the `k`-th chunk of an operand is moved in; 0
  /// outside pipelines.
  uint64_t round_of(const ThreadBlock& block, const Op& op, const Operand& o, uint32_t k) const;
  /// Which class of equally long chunks an op moves at a position: 0 if they are as long as
  /// scratch, else one more than the caller's (Contract::size_class).
  uint64_t length_of(uint32_t rank, const Op& op, Position position, uint32_t call) const;
  /// How much of a chunk's bytes an op moves that stores plain data at a position: 0 if all of
  /// them, else the class of chunks which may be shorter. The first of a part is as long as any.
  uint64_t limit_of(uint32_t rank, const Op& op, Position position) const {
    return as_limit(rank, length_of(rank, op, position, calls_.now(rank)));
  }
  /// A class of chunks as a limit of what is moved.
  uint64_t as_limit(uint32_t rank, uint64_t length) const;
  /// Lemma O6: do both accesses of a rank's ops give the same bytes of a chunk to the same thread?
  bool same_threads(uint32_t rank, const Record& old, const Record& access) const;
  /// In place, a copy may find its chunk where it should be, and leaves it alone.
  bool copies_onto_itself(uint32_t rank, const Op& op, uint32_t k) const;

 private:
  bool has_channel(uint32_t rank, const Operand& o, ChannelKind kind) const {
    return o.channel != kNone && program_.ranks[rank].channels[o.channel].kind == kind;
  }
  Extent piece_of(const ThreadBlock& block, const Op& op, const Operand& o, uint32_t k,
                  const ChunkName& name) const;

  const System& system_;
  const Program& program_;
  const LoopGroups& groups_;
  Cuts& cuts_;
  const CallOrder& calls_;
};

template <class Each>
void OpBytes::each_place(uint32_t rank, const Operand& o, uint32_t k, Each&& each) const {
  const auto at = [&](uint32_t owner, uint32_t buffer) {
    const uint32_t chunk = o.first + k;
    each(ChunkName{owner, buffer, chunk}, system_.spot(owner, buffer, chunk, calls_.now(rank)));
  };
  if (o.channel == kNone) return at(rank, o.buffer);
  const Rank& here = program_.ranks[rank];
  const Channel& channel = here.channels[o.channel];
  if (channel.kind != ChannelKind::switch_) return at(channel.peer, o.buffer);
  for (const int64_t q : program_.values(channel.group)) {
    const uint32_t member = static_cast<uint32_t>(q);
    at(member, member_buffer(program_, member, here.buffers[o.buffer], o.buffer));
  }
}

}  // namespace mscclc::proof
