// Operands of one op that mean the same memory where machines promise no order between what the op
// does there. Such an op is refused, by hand or from a pass:
//
//   reduce_copy_packets x[0], s[0] <- input[0], s[0]    s is of sentinel packets: is the slot
//                                                       emptied before it is stored into, or after?
//   unpack_packets x[0], x[1] <- s[0], s[0]             the second read waits for packets that the
//                                                       first has taken
//   put ch.b[0], ch.b[0] <- input[0], input[1]          which one is last?
//
// Chunks that only may coincide in place are the prover's matter, unless the contract says that
// they do. So are shifted ranges (`copy b[0..2] <- b[1..3]`), which order by chunk.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "ir/program/program.h"

namespace mscclc {

struct Coinciding {
  std::string code, message, remedy;
  const Operand* at;  ///< the operand that is one too many: the later one in written order
};

/// The first operand whose channel an earlier one names, too; nullptr: there is none. A port takes
/// each put with its signal, so that a first signal would leave before the last put.
const Operand* repeated_channel(std::span<const Operand> operands);

/// The first such operands of an op of `rank`, or nothing. `pieces`: what the op touches is one of
/// so many parts (those of its group, too); 0 or 1: all. REQUIRES: operands of the kinds that the
/// op table wants, in range.
std::optional<Coinciding> find_coinciding(const Program& program, uint32_t rank, OpKind kind,
                                          uint64_t pieces, std::span<const Operand> dsts,
                                          std::span<const Operand> srcs);

}  // namespace mscclc
