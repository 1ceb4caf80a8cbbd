// Text of row functions to their IR.
#pragma once

#include <optional>
#include <vector>

#include "ir/diagnostics/diagnostic.h"
#include "ir/rows/row_function.h"

namespace mscclc::rows {

/// Reads a text that declares row functions and nothing else. nullopt after mistakes, all of which
/// are in `diagnostics`, with warnings of names that nothing uses.
std::optional<std::vector<Function>> read_rows(const Sources& sources, FileId file,
                                               Diagnostics& diagnostics);

}  // namespace mscclc::rows
