// Judges which ops MSCCL++'s executor runs rightly in a plan. Those have its wire names; all
// others are written with long names, which its loader refuses, so that no plan of ours ever runs
// wrongly there without a word. The reasons are in mscclpp_rules.def, and FORMAT.md explains them.
#pragma once

#include <cstdint>
#include <string_view>

#include "ir/program/program.h"
#include "plans/format/wire/wire_layout.h"

namespace mscclc {

enum class MscclppFault : uint8_t {
  none,
#define MSCCLPP_FAULT(name, text) name,
#include "plans/format/wire/mscclpp_rules.def"
};
inline constexpr size_t kPeerFaults = 1 +
#define MSCCLPP_FAULT(name, text) 1 +
#include "plans/format/wire/mscclpp_rules.def"
                                      0;

/// "flush_ignored"; "does nothing for a flush; …".
std::string_view name(MscclppFault fault);
std::string_view text(MscclppFault fault);

/// The name of an op in plans where MSCCL++'s executor must not run it: its own name, which that
/// executor does not know, or `mscclc_` and its name where it would.
std::string_view long_name(OpKind kind, bool relaxed);
/// Finds the op of a long name; `relaxed` says which form.
std::optional<OpKind> find_long_name(std::string_view name, bool& relaxed);

/// What is to be known of an op's operands to judge it, gathered where they are written.
struct OpFacts {
  // Bits over WireType: the types of buffers among
  uint8_t local_sources = 0, local = 0;  ///< chunks of this rank: sources, all
  uint8_t remote = 0;                    ///< chunks at far ends and at switches
  bool plain_remote_scratch = false;     ///< … of scratch, not packets
  bool offsets_differ = false;           ///< a source and its destination stand at different places
  bool plain_in_the_middle = false;      ///< of a packet sum
  bool unmatched_switch = false;         ///< declared otherwise on other ranks
  bool unaligned_switch = false;         ///< its buffer stands elsewhere on other ranks
  bool signals_early = false;            ///< at a port, not with the thread that has put there
  MscclppFault buffer =
      MscclppFault::none;  ///< what is wrong with a buffer: copies, units, packet_format
  uint32_t barrier = 0;    ///< id of a barrier
  uint32_t ids = 0;        ///< channels or semaphores listed in the op
  uint32_t channel_position = 0, buffer_position = 0;  ///< the highest in the block's tables
  ChannelKind channel = ChannelKind::memory;           ///< of its remote chunks or channels
};

/// The rules of a program, asked op by op.
class MscclppRules {
 public:
  MscclppRules(const Program& program, const WireLayout& layout);
  /// Why MSCCL++'s executor would not run `op` of `rank` rightly, or none.
  MscclppFault judge(uint32_t rank, const Op& op, const OpFacts& facts) const {
    const MscclppFault fault = judge_kind(op, facts);
    return fault != MscclppFault::none ? fault : judge_limits(rank, op, facts);
  }
  /// What is wrong with a scratch buffer: copies, units, packet_format, none.
  MscclppFault judge_buffer(const WireBuffer& buffer) const;

  /// What MSCCL++'s proxy can number per rank: 512 buffers, of which it needs four itself.
  static constexpr uint32_t kMaxPorts = 1024, kMaxPortBuffers = 508;

 private:
  MscclppFault judge_kind(const Op& op, const OpFacts& facts) const;
  MscclppFault judge_move(const Op& op, const OpFacts& facts) const;
  MscclppFault judge_operands(const Op& op, const OpFacts& facts) const;
  MscclppFault judge_limits(uint32_t rank, const Op& op, const OpFacts& facts) const;

  const Program& program_;
  bool double_scratch_;
  bool uneven_halves_;  ///< ranks cut doubled scratch at different places
  MscclppFault whole_plan_ = MscclppFault::none;
  std::vector<bool> many_ports_;  ///< per rank
};

}  // namespace mscclc
