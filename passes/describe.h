// How passes speak of an op in diagnostics: its place in the author's text, and what it is and
// where it runs ("'wait up[1]' in tb 2 of rank 0").
#pragma once

#include <string>

#include "ir/diagnostic.h"
#include "ir/program.h"

namespace mscclc {

/// Line and column of the op's first location; invalid if it has none.
Span span_of(const Program& program, const Op& op);
/// "'wait up[1]' in tb 2 of rank 0", with the loop bindings if there are any.
std::string describe(const Program& program, uint32_t rank, const Op& op);

}  // namespace mscclc
