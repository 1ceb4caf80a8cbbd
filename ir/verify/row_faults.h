// What is wrong with what a program says of row functions: for the structural check, and for front
// ends, which report it where it is written.
#pragma once

#include <optional>
#include <string>

#include "ir/program/program.h"

namespace mscclc {

struct RowFault {
  std::string code, message;
  const Op* op = nullptr;  ///< whose it is, if it is an op's
};

/// Of functions, externals and the contract. REQUIRES: the contract is right otherwise.
std::optional<RowFault> rows_fault(const Program& program);
/// An op that computes rows, or would.
struct RowOp {
  OpKind kind = OpKind::apply;
  bool in_loop = false;
  std::span<const Operand> dsts, srcs;
  Slice applied;
};
/// Of such an op at a rank. REQUIRES: no rows_fault(); applied_fits(); operands that are right.
std::optional<RowFault> applied_fault(const Program& program, uint32_t rank, const RowOp& op);
std::optional<RowFault> applied_fault(const Program& program, uint32_t rank, const Op& op);
/// Of a rank: a chunk of an external that is written has one op, which reads it before it writes.
/// So nothing has to order ops for the sake of externals. REQUIRES: no applied_fault().
std::optional<RowFault> external_writes_fault(const Program& program, uint32_t rank);

}  // namespace mscclc
