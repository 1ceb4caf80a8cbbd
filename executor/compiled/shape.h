// What a kernel that is compiled for one plan knows of a rank: the steps of its blocks, without
// their sizes and addresses. The same for every message size, or nearly: a step that moves nothing
// in a call is run with an empty extent, and a call whose steps are others (of sizes that do not
// divide, at odd addresses) is left to the interpreter. Programs with row functions have none: they
// are packed with the same steps for all sizes (RankProgram::keeps_steps).
//
//   auto shape = CompiledShape::of(program, rank, diagnostics);  // to compile, and to load
//   if (shape->fill(programs, lines)) ...                       // a call: the kernel's arguments
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "executor/block_programs.h"
#include "executor/compiled_arguments.h"
#include "ir/support/result.h"

namespace mscclc {

/// A step as it stands in code.
struct CompiledStep {
  /// How many places are those of its operands.
  uint32_t operands() const { return count * (uint32_t{dsts} + srcs); }

  device::StepKind kind = {};
  ReduceOp reduce = {};
  uint8_t flags = 0;   ///< device::OpFlags, except those that a call settles
  uint32_t count = 0;  ///< of a pipeline: the steps of its body, which follow it
  uint16_t dsts = 0, srcs = 0;
  uint16_t function = 0;         ///< of family rows
  std::vector<uint32_t> places;  ///< of its operands: device::CompiledPlace; of a sum that is
                                 ///< handed to a row function its values' follow
  uint32_t extent = 0;           ///< its first line among the block's own
  uint32_t first = 0;            ///< that of its first target
  bool operator==(const CompiledStep&) const = default;
};

/// The code of some blocks: their steps.
struct CompiledCode {
  std::vector<CompiledStep> steps;
  uint32_t leading = 0;  ///< so many steps at the beginning neither wait nor signal nor add up
  bool operator==(const CompiledCode&) const = default;
};

/// A line of a kernel's arguments.
struct CompiledLine {
  uint64_t words[2];
  bool operator==(const CompiledLine&) const = default;
};

class CompiledShape {
 public:
  /// Errors: no-compiled-kernel (the rank's blocks do what no such kernel does), those of lowering.
  [[nodiscard]] static std::optional<CompiledShape> of(const Program& program, uint32_t rank,
                                                       Diagnostics& diagnostics);

  /// The arguments of a call on these packed programs; false: their steps are not those of the
  /// code.
  [[nodiscard]] bool fill(const BlockPrograms& programs, std::vector<CompiledLine>& lines) const;
  /// Does the kernel take such a call, if fill() does? The reduction is the call's.
  bool takes(const BlockPrograms& programs, Dtype dtype, Dtype accumulate, ReduceOp reduce) const;

  /// Equal for equal code: 16 hex digits.
  std::string key() const;
  /// The end of a kernel's name: the type whose sums or rows it takes, or "moves".
  std::string arithmetic(Dtype dtype) const;

  PacketFormat format() const { return format_; }
  bool adds() const { return adds_; }
  /// Do its blocks apply row functions? Then a kernel is of one type, and for blocks of threads().
  bool has_rows() const { return has_rows_; }
  /// Do its blocks hand anything to the rank's proxy?
  bool posts() const { return posts_; }
  /// Do its blocks count the signals that they take (WaitSlots)?
  bool counts() const { return counts_; }
  /// Granule in which rounds of pipelines are cut.
  uint32_t align() const { return align_; }
  uint32_t threads() const { return threads_; }
  uint32_t blocks() const { return static_cast<uint32_t>(code_of_.size()); }
  const std::vector<CompiledCode>& codes() const { return codes_; }
  /// The code of a block, by index.
  uint32_t code_of(uint32_t block) const { return code_of_[block]; }
  /// Lines of all blocks, then so many of each block's own.
  uint32_t shared_lines() const { return shared_lines_; }
  uint32_t own_lines() const { return own_lines_; }
  uint32_t lines() const { return shared_lines_ + blocks() * own_lines_; }
  /// Are they too many for the parameters of a launch? Then the second is the address of a copy.
  bool in_memory() const { return lines() > device::kMaxCompiledLines; }

 private:
  Result<void> add_blocks(const BlockPrograms& programs);
  void place_operands(const BlockPrograms& programs);
  Result<void> check_rows(const Program& program) const;

  PacketFormat format_ = PacketFormat::none;
  bool adds_ = false, posts_ = false, counts_ = false, has_rows_ = false;
  uint32_t align_ = 16;
  uint32_t threads_ = 0, shared_lines_ = 0, own_lines_ = 0;
  std::vector<CompiledCode> codes_;
  std::vector<uint32_t> code_of_;
};

}  // namespace mscclc
