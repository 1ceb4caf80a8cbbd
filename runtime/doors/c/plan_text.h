// Plans as text, which callers of the C interface get and give.
#pragma once

#include <optional>
#include <string>

#include "compiler/compile.h"
#include "ir/diagnostics/diagnostic.h"

namespace mscclc::capi {

/// Compiles a program and proves the plan, which it gives as JSON; nullopt: reported.
std::optional<std::string> compile_to_json(Sources& sources, FileId file,
                                           const FrontEndOptions& options,
                                           Diagnostics& diagnostics);

}  // namespace mscclc::capi
