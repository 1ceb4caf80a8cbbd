// How long everything is for one message: chunks, units of pipelines and rounds, parts, pieces. Not
// for use outside the explorer.
//
// Cells are 16 bytes, or 8 where lines of LL128 need it. Without a message to go by, lengths are
// *plain*: chunks are equally long, three pieces for each part that an op or a round is cut into,
// pipelines have three rounds or more, and a packet of any format holds one piece.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/program/program.h"

namespace mscclc::explorer {

/// From `begin` to `end`, not included.
struct Extent {
  uint64_t begin = 0, end = 0;
};

class Shape {
 public:
  /// REQUIRES: Program::split. `bytes` of the message, if they are given.
  Shape(const Program& program, std::optional<uint64_t> bytes);

  uint64_t grain() const { return grain_; }
  /// Cells that a chunk of the buffer takes.
  uint32_t cells(const Buffer& buffer) const;
  /// Bytes of data in a chunk: of the caller's, or of scratch.
  uint64_t length(uint32_t rank, uint32_t buffer, uint32_t chunk) const;
  uint64_t longest() const { return longest_; }
  /// The same without what fills up its last granule.
  uint64_t longest_data() const { return longest_data_; }
  uint64_t unit(uint32_t loop) const { return units_[loop]; }
  uint64_t rounds(uint32_t loop) const;
  /// Bytes of data in a unit of packets.
  uint64_t packet(PacketFormat format) const;
  /// The virtual bytes of an op over `chunks` chunks in a round (0 outside pipelines) that its part
  /// moves. Chunk k has those from k * stride() on.
  Extent own(const Op& op, uint32_t chunks, PacketFormat format, uint64_t round) const;
  /// Bytes from one chunk of an op to the next, as parts and rounds are cut.
  uint64_t stride(PacketFormat format) const;

 private:
  void make_plain(const Program& program);
  void find_longest_data(const Program& program);

  std::optional<Chunking> chunking_;  ///< of a real message
  const uint32_t align_;
  uint64_t grain_ = 16, longest_ = 0, longest_data_ = 0, largest_unit_ = 0;
  std::vector<uint64_t> units_;   ///< by loop
  std::vector<uint32_t> chunks_;  ///< by loop
};

}  // namespace mscclc::explorer
