// Diagnostics as the reason of one attempt: the first of them (docs/design/failures.md).
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "ir/diagnostics/diagnostic.h"

namespace mscclc {

/// The message of the first error, or of the first warning if there is no error. `otherwise`: if
/// nothing was reported.
inline std::string first_message(const Diagnostics& diagnostics, std::string_view otherwise = "") {
  const auto& all = diagnostics.all();
  if (all.empty()) return std::string(otherwise);
  const auto error = std::ranges::find(all, Severity::error, &Diagnostic::severity);
  return error == all.end() ? all.front().message : error->message;
}

}  // namespace mscclc
