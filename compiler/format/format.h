// The canonical form of programs and IR text (docs/language.md, 'Canonical form').
#pragma once

#include <optional>
#include <string>

#include "ir/base/source.h"
#include "ir/diagnostics/diagnostic.h"

namespace mscclc {

/// Canonical form of a program's text; nullopt after syntax errors. Formatting it again changes
/// nothing.
[[nodiscard]] std::optional<std::string> format_program(Sources& sources, FileId file,
                                                        Diagnostics& diagnostics);

}  // namespace mscclc
