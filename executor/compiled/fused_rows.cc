#include "executor/compiled/fused_rows.h"

#include <fmt/format.h>

#include "ir/program/applied.h"
#include "ir/support/precondition.h"

namespace mscclc {
namespace {

/// Is a buffer of lines among an op's operands? Threads of a warp share a line, whose pieces of 16
/// bytes begin beside those that row functions have.
const PacketFormatInfo* lines_of(const Program& program, uint32_t rank, const Op& op) {
  for (const auto& side : {program.dsts(op), program.srcs(op)}) {
    for (const Operand& operand : side) {
      const PacketFormatInfo& format = info(program.buffer_of(rank, operand).packets);
      if (format.mark == PacketMark::line) return &format;
    }
  }
  return nullptr;
}

}  // namespace

std::optional<std::string> why_rows_apart(const Program& program) {
  if (program.functions.empty()) return {};
  for (uint32_t r = 0; r < program.ranks.size(); ++r) {
    for (const Op& op : program.ranks[r].ops) {
      if (!applies(op) || info(op.kind).has(kApplies)) continue;
      if (const PacketFormatInfo* format = lines_of(program, r, op)) {
        return fmt::format(
            "sums and row functions are steps of their own: {} packets hold {} bytes, which are "
            "not the columns of a thread; LL16 would save a step",
            format->name, format->data);
      }
    }
  }
  return {};
}

RowSteps compiled_row_steps(const Program& program) {
  precondition(program.split);
  return why_rows_apart(program) ? RowSteps::apart : RowSteps::together;
}

}  // namespace mscclc
