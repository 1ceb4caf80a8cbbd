// The programs of a rank's blocks as steps (interpreter/steps.h): every address is worked out here,
// so that a block only has to fetch its piece, and small ones travel in the parameters of a launch.
//
//   const WaitSlots slots(rank);          // once
//   BlockPrograms programs;
//   programs.pack(rank, places, slots);   // after fit_rank_to_size(); again for every message size
//   plan.programs = programs.data(), plan.program_bytes = programs.stride(), ...
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "executor/interpreter/steps.h"
#include "executor/launch.h"
#include "executor/lower.h"

namespace mscclc {

/// How blocks know how many signals they have taken. Where a block alone waits at a channel end, as
/// often in every call, that follows from the number of the call; where it does so in a pipeline,
/// it owns a count; ends at which several blocks wait have neither (device::kNoSlot).
class WaitSlots {
 public:
  struct Slot {
    uint16_t slot = device::kNoSlot;
    bool counted = false;  ///< device::counted_slot()
  };
  explicit WaitSlots(const RankProgram& rank);
  /// Of a target of a wait, by index among the rank's targets.
  Slot of_target(uint32_t target) const { return slots_[target]; }
  /// Counts of a block: the number of its calls, then its slots. The same for all blocks.
  uint32_t per_block() const { return per_block_; }

 private:
  std::vector<Slot> slots_;
  uint32_t per_block_ = 1;
};

class BlockPrograms {
 public:
  /// What ops name by index, as addresses. Parallel to `rank.bases`, to the rank's channels, its
  /// semaphores and its barriers.
  struct Places {
    /// An external of the call: its first row here is row `first_row` of the rank's output.
    struct External {
      uint8_t* address = nullptr;             ///< `is_value`: not one, but the bytes of the value
      uint64_t first_row = 0, row_bytes = 0;  ///< 0 bytes: all rows share what there is
      bool is_value = false;
    };
    /// An array of flags of the call.
    struct Flags {
      uint8_t* words = nullptr;
      uint32_t first = 0;      ///< its first flag's number over all arrays
      uint32_t raises = 1;     ///< of each in a call
      uint8_t bytes = 4;       ///< of a word
      bool of_system = false;  ///< its scope; else the GPU's
    };
    std::span<const device::BaseAddress> bases;
    std::span<const device::ChannelEnd> ends;
    uint64_t* semaphores = nullptr;
    device::Barrier* barriers = nullptr;
    std::span<const External> externals = {};  ///< of programs with row functions
    std::span<const Flags> flags = {};         ///< of programs with flags, by array
  };

  /// Packs a fitted rank. Programs of less than `least_stride` bytes are made so long. False: it is
  /// too large for that; refusal() says in what.
  bool pack(const RankProgram& rank, const Places& places, const WaitSlots& slots,
            uint32_t least_stride = 0);
  std::string_view refusal() const { return refusal_; }

  /// Bytes that pack() makes of a rank at most, whatever the message size.
  static uint64_t most_bytes(const RankProgram& rank);

  /// Program b begins at data() + b * stride(), with a device::StepHeader; aligned to 16 bytes.
  const uint8_t* data() const { return reinterpret_cast<const uint8_t*>(lines_.data()); }
  uint32_t stride() const { return stride_; }
  uint64_t bytes() const { return lines_.size() * sizeof(Line); }
  /// device::Uses of all blocks together.
  uint32_t uses() const { return uses_; }

 private:
  /// The moves of an op that become one step.
  struct Alike {
    uint32_t first, count;
    uint32_t dsts, srcs;  ///< of each, members counted one by one
  };
  /// Where a block's part of each array begins.
  struct Block {
    size_t steps, operands, targets;
    bool extras;
    bool blind = false;       ///< it may not have heard from all peers (early_launch.h)
    uint32_t row_at = kNone;  ///< low bits of the address of an operand of sums
    uint32_t row_line = 128;  ///< device::StepHeader
  };

  void add_block(uint32_t block);
  void add_op(uint32_t op);
  void add_moves(const device::DeviceOp& op);
  void add_targets(const device::DeviceOp& op);
  /// False: nothing of that run is this block's, so there is no step, or one with an empty extent
  /// (RankProgram::keeps_steps).
  bool add_step(const device::DeviceOp& op, const Alike& moves, uint32_t run);
  void add_operand(const device::Move& move, const device::Stretch& run, uint32_t k);
  void settle_rows(const device::DeviceOp& op, device::Step& step);
  void add_row_values(const device::DeviceOp& op, const device::Stretch& run);
  void add_plain_value(uint8_t* at, uint32_t flags);
  void note_begin(uint64_t at);
  void note_rows(size_t first_operand);
  void join_moves_of_one_source(device::Step& step);
  void settle_early_launch(const device::DeviceOp& op, uint32_t count, bool whole);
  bool takes_copy(const device::DeviceOp& op, const device::Step& step) const;
  void take_copy_at_end();
  bool signals_follow(const device::Step& puts, const device::Step& signals) const;
  void join_puts_and_signals();
  device::Step begin_step(const device::DeviceOp& op) const;
  device::StepTarget target_of(const device::DeviceOp& op, uint32_t target) const;
  device::StepTarget channel_target(uint32_t channel) const;
  device::StepTarget flag_target(uint32_t number) const;
  Alike alike_from(const device::DeviceOp& op, uint32_t i) const;
  uint32_t members(const device::Move& move, uint32_t first, uint32_t count) const;
  void note_uses(const device::DeviceOp& op);
  void require(bool holds, std::string_view else_refusal);
  uint64_t bytes_of(size_t block) const;
  void write(size_t block, uint8_t* to) const;

  const RankProgram* rank_ = nullptr;
  const WaitSlots* slots_ = nullptr;
  Places places_;
  // Of all blocks, one after the other.
  std::vector<device::Step> steps_;
  std::vector<device::StepOperand> operands_;
  std::vector<device::StepExtra> extras_;  ///< parallel to operands
  std::vector<device::StepTarget> targets_;
  std::vector<Block> blocks_;
  std::string_view refusal_;  ///< "": there is none

  struct Line {
    uint64_t words[2];
  };
  std::vector<Line> lines_;
  uint32_t stride_ = 0, uses_ = 0;
};

}  // namespace mscclc
