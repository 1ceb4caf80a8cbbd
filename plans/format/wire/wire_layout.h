// Where things of the IR stand in a plan: scratch buffers in the one scratch space of a rank, and
// channels in the order in which MSCCL++'s executor joins them. Computed once per program, from
// the IR alone, so that reader and writer agree on it.
//
//   scratch   plain buffers in their order, then packet buffers: a packet chunk takes the bytes of
//             two, so the byte ranges of the two kinds never meet
//   halves    where MSCCL++'s executor cuts doubled scratch in two goes by the rank's own chunks,
//             and it looks for a peer's half where its own is: so doubled scratch has as many
//             chunks on all ranks, and so many that each half begins at a multiple of 16 bytes.
//             Chunks that are there for this alone hold nothing. (Shared scratch has a fixed size.)
//   channels  ids count per kind. The n-th memory (port) channel of rank A to rank B is joined with
//             the n-th of B to A. Channels keep the order of the IR where that pairs them rightly;
//             else those of the higher rank change places among themselves. Ends without partner
//             come last
//   switches  on the wire a switch belongs to one caller's buffer or to scratch: one entry for each
//             of them that a member addresses through it; entries stand in the same order on all
//             members
#pragma once

#include <cstdint>
#include <vector>

#include "ir/program/program.h"

namespace mscclc {

enum class WireType : uint8_t { input, output, scratch };
/// 'i', 'o' or 's'.
inline char letter(WireType type) { return "ios"[static_cast<size_t>(type)]; }

struct WireBuffer {
  uint32_t offset = 0;  ///< of its first chunk among the chunks of its type
  WireType type = WireType::input;
  PacketFormat packets = PacketFormat::none;
  uint32_t copies = 1;
  uint32_t units = 0;
};

/// One switch on the wire: an IR channel as seen on one type of buffer.
struct WireSwitch {
  uint32_t channel;  ///< index among the rank's channels
  WireType type;
};

struct WireLayout {
  bool packets = false;         ///< protocol LL: LL8 or LL16 packets exist
  bool double_scratch = false;  ///< scratch has two halves that calls use in turn

  std::vector<uint32_t> first_buffer;  ///< per rank, in `buffers`
  std::vector<WireBuffer> buffers;
  std::vector<uint64_t> scratch_chunks;  ///< per rank; more than 32 bits hold is an error

  std::vector<uint32_t> first_channel;  ///< per rank, in `channel_ids`
  /// Memory, port: id on the wire. Switch: position among the rank's switch channels.
  std::vector<uint32_t> channel_ids;
  std::vector<std::vector<WireSwitch>> switches;  ///< per rank, in wire order
  /// Per rank: id on the wire of (switch channel, type), 3 entries each, or kNone.
  std::vector<std::vector<uint32_t>> switch_ids;
  /// Per rank: the switch channel (by position) is declared alike on all its members.
  std::vector<std::vector<bool>> switch_matched;

  const WireBuffer& buffer(uint32_t rank, uint32_t index) const {
    return buffers[first_buffer[rank] + index];
  }
  uint32_t channel_id(uint32_t rank, uint32_t channel) const {
    return channel_ids[first_channel[rank] + channel];
  }
  /// The wire id of `channel`, a switch, for buffers of `type`.
  uint32_t switch_id(uint32_t rank, uint32_t channel, WireType type) const {
    return switch_ids[rank][3 * channel_id(rank, channel) + static_cast<uint32_t>(type)];
  }
};

/// REQUIRES: verify_structure(program).
WireLayout lay_out(const Program& program);

/// The members of WireLayout that come from the buffers alone.
void lay_out_buffers(const Program& program, WireLayout& layout);

}  // namespace mscclc
