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
/// Gives a program that takes any multiple of some columns (Contract::any_columns) so many, so that
/// it can run; or says why it cannot have them, and leaves it as it was.
std::optional<RowFault> fix_columns(Program& program, uint64_t columns);
/// Why a program cannot run as it is: its columns are not fixed.
std::optional<RowFault> columns_fault(const Program& program);
/// Of so many columns, whose rows have no multiple of 16 bytes, of values of so many bytes: "60
/// columns are served, and 64", the nearest whose rows have.
std::string served_columns(uint32_t columns, uint32_t value_bytes);
/// Why rows of so many columns can be of no call, whatever its type.
std::optional<std::string> width_fault(uint32_t columns);
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
/// Of operands of an op that computes no rows: they, or each pair of them, hold rows of one form, T
/// where it adds up, and whole rows. `in_loop`: it is in a pipeline.
std::optional<RowFault> types_fault(const Program& program, uint32_t rank, OpKind kind,
                                    bool in_loop, std::span<const Operand> dsts,
                                    std::span<const Operand> srcs);
/// Of a scratch buffer: what it may hold.
std::optional<RowFault> buffer_fault(const Program& program, const Buffer& buffer);
/// Of a rank: a chunk of an external that is written has one op, which reads it before it writes.
/// So nothing has to order ops for the sake of externals. REQUIRES: no applied_fault().
std::optional<RowFault> external_writes_fault(const Program& program, uint32_t rank);

}  // namespace mscclc
