// An error of the communicator, as the result of what met it.
#pragma once

#include <string>

#include "ir/diagnostics/diagnostic.h"

namespace mscclc {

/// False, for callers to return; `text` is in `diagnostics`.
inline bool refuse(Diagnostics& diagnostics, const char* code, const std::string& text) {
  diagnostics.error(code, {}, text);
  return false;
}

}  // namespace mscclc
