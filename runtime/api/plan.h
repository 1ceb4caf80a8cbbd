// Plans as callers hold them: read from JSON, and given to Communicator::load().
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "ir/diagnostics/diagnostic.h"

namespace mscclc {

struct Program;

/// Reads a plan. `name` is the file's, for messages. nullptr: reported; every error names the JSON
/// path. What the file says of its proof is not believed: load() sees to that.
[[nodiscard]] std::shared_ptr<const Program> load_plan(std::string_view json,
                                                       const std::string& name,
                                                       Diagnostics& diagnostics);

}  // namespace mscclc
