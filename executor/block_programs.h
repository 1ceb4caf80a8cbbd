// The programs of a rank's blocks, packed: everything that a block reads while it runs lies in one
// piece of a fixed size, with indices of its own, so that a GPU block fetches it in one go into
// shared memory, and small ones travel in the parameters of a launch.
//
//   BlockPrograms programs;
//   programs.pack(rank, bases, ends);    // after patch_rank(); again for every message size
//   plan.programs = programs.data(), plan.program_bytes = programs.stride(), ...
//
// Kinds of ops that do the same are written as one (`put` as `copy`): a kernel then holds their
// handler once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "executor/launch.h"
#include "executor/lower.h"

namespace mscclc {

class BlockPrograms {
 public:
  /// Packs a patched rank. `bases` and `ends`: parallel to `rank.bases` and to the rank's channels.
  /// Programs of less than `least_stride` bytes are made so long. False: a program has 2 GiB or
  /// more.
  bool pack(const RankProgram& rank, std::span<const device::BaseAddress> bases,
            std::span<const device::ChannelEnd> ends, uint32_t least_stride = 0);

  /// Bytes that pack() makes of a rank at most, whatever the message size.
  static uint64_t most_bytes(const RankProgram& rank);

  /// Program b begins at data() + b * stride(), with a device::BlockHeader; aligned to 16 bytes.
  const uint8_t* data() const { return reinterpret_cast<const uint8_t*>(lines_.data()); }
  uint32_t stride() const { return stride_; }
  uint64_t bytes() const { return lines_.size() * sizeof(Line); }
  /// device::Uses of all blocks together.
  uint32_t uses() const { return uses_; }

 private:
  /// Numbers in the order in which keys come; forgets all in no time.
  class Numbering {
   public:
    void begin(size_t keys);
    /// The key's number; `values` new numbers, for value, value + 1 ..., if it has none.
    uint32_t number(size_t key, uint32_t value, uint32_t values);
    const std::vector<uint32_t>& values() const { return values_; }

   private:
    struct Entry {
      uint64_t turn = 0;
      uint32_t number = 0;
    };
    std::vector<Entry> entries_;
    std::vector<uint32_t> values_;  ///< by number
    uint64_t turn_ = 0;
  };
  /// A stretch of one of the rank's arrays, and where it goes.
  struct Stretch {
    uint64_t first = 0, count = 0;
    uint32_t at = 0;
  };
  struct Block {
    Stretch ops, moves, operands, runs, offsets, loops, targets;
    uint32_t bases = 0, ends = 0, channels = 0;
  };

  void find_stretches(uint32_t block, Block& out) const;
  void number_what_it_names(const Block& block);
  uint64_t place(Block& block) const;
  void write(const Block& block, uint8_t* to) const;
  uint32_t base_of(const device::DeviceOperand& operand);
  uint32_t channel_of(uint32_t channel);
  void note_uses(const device::DeviceOp& op);
  bool posts(const device::DeviceOp& op) const;

  const RankProgram* rank_ = nullptr;
  std::span<const device::BaseAddress> bases_;
  std::span<const device::ChannelEnd> ends_;
  Numbering own_bases_, own_channels_;
  std::vector<device::DeviceOperand> operands_;  ///< of the block at hand, renumbered
  std::vector<uint32_t> targets_;

  struct Line {
    uint64_t words[2];
  };
  std::vector<Line> lines_;
  uint32_t stride_ = 0, uses_ = 0;
};

}  // namespace mscclc
