// The canonical form of programs and IR text (docs/design/ir_text.md).
#pragma once

#include <optional>
#include <string>

#include "ir/diagnostics/diagnostic.h"
#include "ir/support/source.h"

namespace mscclc {

/// Canonical form of a program's text; nullopt after syntax errors. Formatting it again changes
/// nothing.
[[nodiscard]] std::optional<std::string> format_program(Sources& sources, FileId file,
                                                        Diagnostics& diagnostics);

}  // namespace mscclc
