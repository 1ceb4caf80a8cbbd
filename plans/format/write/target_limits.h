// Checks a program against the limits of a target, in the course of writing it.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "ir/program/program.h"
#include "ir/report/program_report.h"
#include "plans/format/target.h"
#include "plans/format/wire/mscclpp_rules.h"
#include "plans/format/wire/wire_layout.h"

namespace mscclc {

/// An error at the first op of the first block that is too much for the target, where a rank has
/// more blocks than run there at once: they wait for one another. A plan with row functions may
/// have any number of them.
void check_blocks(const Program& program, const Target& target, ProgramReport& report);

class TargetLimits {
 public:
  TargetLimits(const Program& program, const Target& target, ProgramReport& report);
  /// Threads, blocks, alignment and bytes.
  void check_program(const WireLayout& layout);
  void check_channels(const WireLayout& layout, uint32_t rank);
  void check_op(uint32_t rank, const Op& op, const OpFacts& facts) {
    if (exceeds(op, facts)) report_op(rank, op, facts);
  }
  /// `ops`: with one for each pipeline; `channels`, `remote_buffers`: the longest table of a kind.
  void check_block(uint32_t rank, const Op& last, uint64_t ops, uint64_t channels,
                   uint64_t remote_buffers);
  void check_barriers(uint32_t rank, const Op& op, uint64_t barriers);
  /// An op with a long name.
  void check_name(uint32_t rank, const Op& op, MscclppFault fault);

 private:
  void check_bytes(const WireLayout& layout);
  bool exceeds(const Op& op, const OpFacts& facts) const;
  void report_op(uint32_t rank, const Op& op, const OpFacts& facts);
  void too_many(uint32_t rank, const Op& op, std::string what, uint64_t count, uint64_t limit);

  const Program& program_;
  const Target& target_;
  ProgramReport& report_;
  std::set<std::string> reported_;  ///< causes that have been reported: each is reported once
};

}  // namespace mscclc
