// Errors about an op of a program whose text may be gone (passes, plans): reported at the place
// where the author wrote the op, in the author's words.
//
//   ring.mscl:27:14: error: 1 chunk <- 2 chunks
//   ring.mscl:27:14: note: when r = 0, s = 2
//   ring.mscl:27:14: note: in 'put next.inbox[0] <- input[0..2]' (rank 0, tb 1)
#pragma once

#include <string>
#include <vector>

#include "ir/diagnostics/diagnostic.h"
#include "ir/program/program.h"

namespace mscclc {

/// Reports an error at the first location of `op`, with notes of the loop variables' values and
/// of the op and where it runs. REQUIRES: the op's ids are in range.
Diagnostic& op_error(Diagnostics& diagnostics, std::string code, const Program& program,
                     uint32_t rank, const Op& op, std::string message);
/// A note at the place of another op that has to do with the error.
Note op_note(const Program& program, const Op& op, std::string text);
/// Line and column of the op's first location; invalid if it has none.
Span span_of(const Program& program, const Op& op);
/// The loop variables' values at the op's first location.
std::vector<LoopValue> loop_values(const Program& program, const Op& op);
/// The op as one of two accesses (MissingEdge).
EdgeEnd access_of(const Program& program, uint32_t rank, const Op& op, std::string does);
/// The op in a sentence: "'wait up[1]' in tb 2 of rank 0", with the loop bindings if there are any.
std::string describe_op(const Program& program, uint32_t rank, const Op& op);
/// "rank 0, tb 1", "rank 0, group 1..4", "rank 0"
std::string print_place(const Program& program, uint32_t rank, const Op& op);

}  // namespace mscclc
